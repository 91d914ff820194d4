"""A log in a SQLite file passes the contract of a shared storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from onrecord.transcript.testing import SharedLogContract


@pytest.mark.contract
class TestSQLiteFile(SharedLogContract):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.url = f"sqlite:///{tmp_path}/log.db"
