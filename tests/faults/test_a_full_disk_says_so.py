"""On a disk with any too little room callers are told that it is full, and what was told stays true."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import injection
import pytest
from failing_turns import ALL

LIMIT_SECONDS = 300
ROOM = "4m"

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(injection.missing() is not None, reason=str(injection.missing())),
]


def test_with_any_room_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    small, notes = tmp_path / "small", tmp_path / "notes"
    small.mkdir()
    notes.mkdir()
    mount = f'mount -t tmpfs -o size={ROOM} none {small} && exec "$@"'
    prefix = ["unshare", "-Urm", "sh", "-c", mount, "sh"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no small file system can be made here")

    done = subprocess.run(
        [*prefix, sys.executable, str(Path(__file__).with_name("full_disk.py")), small, notes],
        capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["faults"] == []
    assert told["errors"]["StorageFull"] > 10
    assert 0 in told["acked"]
    assert len(ALL) in told["acked"]
