"""When the power goes, what was acknowledged is there: in every image of the disk that may be left."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from disk_images import CALLS, Image, Step, images, read_trace

from onrecord.transcript.errors import OnRecordError
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.verify import verify

IMAGES = 400
IMAGES_OF_THE_BEGINNING = 200
CALLS_OF_THE_BEGINNING = 60
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


def _faults(made: Iterable[Image], folder: Path) -> list[str]:
    wrong = []
    for image in made:
        where = folder / "image"
        where.mkdir()
        try:
            wrong.append(_missing(image, where))
        except OnRecordError as error:
            wrong.append(f"{image.name}: {type(error).__name__}: {error}")
        shutil.rmtree(where)
    return [fault for fault in wrong if fault]


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> list[Step]:
    folder = tmp_path_factory.mktemp("power")
    return read_trace(_trace(folder), folder / "disk")


def test_what_was_acknowledged_is_in_every_image(
    steps: list[Step], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = list(images(steps, IMAGES))

    wrong = _faults(made, tmp_path)

    with capfd.disabled():
        print(f"\npower loss: images: {len(made)}, at fault: {len(wrong)}", file=sys.stderr)
    assert len(made) == IMAGES
    assert len(made[-1].acked) > 30
    assert wrong == []


def test_a_log_whose_making_was_cut_off_can_be_opened(steps: list[Step], tmp_path: Path) -> None:
    made = images(steps[:CALLS_OF_THE_BEGINNING], IMAGES_OF_THE_BEGINNING, seed=1)

    assert _faults(made, tmp_path) == []


def test_images_without_the_syncs_show_losses(steps: list[Step], tmp_path: Path) -> None:
    """The images would be blind if they kept what no sync covers."""
    unsynced = [step for step in steps if step.what != "sync" or step.path.endswith("disk")]

    assert len(_faults(images(unsynced, 40), tmp_path)) > 5
