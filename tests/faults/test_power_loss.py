"""When the power goes, what was acknowledged is there: in every image of the disk that may be left."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from disk_images import CALLS, Image, images, read_trace

from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.verify import verify

IMAGES = 400
TRACE_LIMIT_SECONDS = 60

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace isn't installed"),
]


def _trace(folder: Path) -> Path:
    log, trace = folder / "disk" / "log.db", folder / "trace"
    log.parent.mkdir()
    child = Path(__file__).with_name("power_child.py")
    subprocess.run(
        ["strace", "-y", "-xx", "-s", "1000000", "-e", f"trace={CALLS}", "-o", str(trace),
         sys.executable, str(child), str(log)],
        check=True, capture_output=True, timeout=TRACE_LIMIT_SECONDS,
    )  # fmt: skip
    return trace


def _missing(image: Image, folder: Path) -> str | None:
    """Put an image on the disk and open it; say what is wrong with it."""
    for path, content in image.files.items():
        (folder / Path(path).name).write_bytes(content)
    with TranscriptLog.open(folder / "log.db") as log:
        there = {str(record.id) for record in log.read_all()}
        fault = verify(log).first_fault
    if not image.acked <= there:
        return f"{image.name}: {len(image.acked - there)} of {len(image.acked)} are missing"
    return f"{image.name}: {fault}" if fault else None


def test_what_was_acknowledged_is_in_every_image(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    steps = read_trace(_trace(tmp_path), tmp_path / "disk")

    wrong, acked = [], 0
    for number, image in enumerate(images(steps, IMAGES)):
        folder = tmp_path / f"image{number}"
        folder.mkdir()
        fault = _missing(image, folder)
        acked = max(acked, len(image.acked))
        if fault:
            wrong.append(fault)
        shutil.rmtree(folder)

    assert acked > 30
    assert wrong == []
    with capfd.disabled():
        print(f"\npower loss: images: {IMAGES}, lost: 0", file=sys.stderr)


def test_an_image_that_lost_a_synced_write_is_found_out(tmp_path: Path) -> None:
    """The images would be blind if they kept what a sync doesn't cover."""
    steps = read_trace(_trace(tmp_path), tmp_path / "disk")
    unsynced = [step for step in steps if step.what != "sync" or step.path.endswith("disk")]

    losses = 0
    for number, image in enumerate(images(unsynced, 40)):
        folder = tmp_path / f"image{number}"
        folder.mkdir()
        try:
            losses += _missing(image, folder) is not None
        except Exception:
            losses += 1

    assert losses > 5
