"""A link from one of our pages to a file of ours leads to a file that is there."""

from __future__ import annotations

import re
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)(?P<target>[^)#\s]+)")
FOLDERS = ("transcript", "projections", "agent", "gateway", "tests", "benchmarks")


def test_each_link_to_a_file_leads_to_one(root: Path) -> None:
    pages = [*root.glob("*.md")]
    for name in FOLDERS:
        pages += (root / name).rglob("*.md")
    broken = [
        f"{page.relative_to(root)}: {link['target']}"
        for page in pages
        for link in LINK.finditer(page.read_text(encoding="utf-8"))
        if not (page.parent / link["target"]).exists()
    ]

    assert pages
    assert broken == []
