"""On a file system that is mounted read-only a log is read where that can be, and never written."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from other_process import run

from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.verify import verify

USE = """
import sys
from onrecord.transcript.errors import StorageFailed
from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog
try:
    with TranscriptLog.open(sys.argv[1]) as log:
        print("read", *(record.version for record in log.read("s")))
        log.append("s", UserMessageReceived(message="m2", text="Now?"))
        print("appended")
except StorageFailed as error:
    assert (error.stored, error.may_send) == ("no", False), error
    assert "check" in str(error), error
    print("refused")
"""

pytestmark = pytest.mark.faults


@pytest.mark.parametrize(("left", "told"), [("open", "read 1\nrefused\n"), ("closed", "refused\n")])
def test_an_append_is_refused_and_the_log_is_as_it_was(
    tmp_path: Path, left: str, told: str
) -> None:
    mount = (
        f'mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path} && exec "$@"'
    )
    prefix = ("unshare", "-Urm", "sh", "-c", mount, "sh")
    if (
        not shutil.which("unshare")
        or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("nothing can be mounted read-only here")
    folder = tmp_path / "open"
    with TranscriptLog.open(folder / "log.db") as log:
        (first,) = log.append("s", UserMessageReceived(message="m1", text="May I?"))
        if left == "open":  # with its WAL beside it, as a killed process leaves it
            shutil.copytree(folder, tmp_path / "killed")
    path = (tmp_path / "killed" if left == "open" else folder) / "log.db"

    assert run(USE, str(path), prefix=prefix) == told

    with TranscriptLog.open(path) as log:
        assert [record.id for record in log.read("s")] == [first.id]
        assert log.append("s", UserMessageReceived(message="m2", text="Now?"))[0].version == 2
        assert verify(log).faults == []
