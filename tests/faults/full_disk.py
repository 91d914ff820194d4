"""Take turns on a small file system, argv[1], with ever more room on it; judge once there is enough.

Says as JSON how often each error was told, and what should hold and doesn't. Files go to argv[2], too.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

from fault_run import run

STEP_BYTES, MOST_BYTES = 36 << 10, 720 << 10


def main() -> None:
    """Fill the file system but for so many bytes, run, and begin again."""
    small, notes = Path(sys.argv[1]), Path(sys.argv[2])
    errors: Counter[str] = Counter()
    faults: list[str] = []
    acked = []
    for room in range(0, MOST_BYTES, STEP_BYTES):
        disk, ballast = small / "disk", small / "ballast"
        disk.mkdir()
        free = os.statvfs(small)
        ballast.write_bytes(bytes(free.f_bavail * free.f_frsize - room))
        done = run(disk, notes, lambda *_: 0, ballast.unlink)
        errors += done.errors
        faults += [f"with {room} bytes: {fault}" for fault in done.faults]
        acked.append(done.acked)
        shutil.rmtree(disk)
    print(json.dumps({"errors": errors, "faults": faults, "acked": acked}))


if __name__ == "__main__":
    main()
