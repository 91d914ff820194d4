"""Appends to the log at argv[1], and says the id of what is acknowledged, one a line."""

from __future__ import annotations

import os
import sys

from onrecord.transcript.events import DeliveryAttempted, StreamChunkDelivered
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage.sqlite import SQLiteDatabase

ROUNDS = 24
CHECKPOINT_EVERY = 7


def main() -> None:
    """Append attempts, which wait for the disk, and outcomes, which don't; move the WAL at times."""
    with TranscriptLog.open(sys.argv[1]) as log:
        assert isinstance(log.database, SQLiteDatabase)
        for number in range(ROUNDS):
            session, name = f"s{number % 2}", f"d{number}"
            text = f"part {number} " * (1 + number * 7 % 160)
            attempts = [
                DeliveryAttempted(delivery=name, text=text),
                DeliveryAttempted(delivery=name, text="more", offset=len(text)),
            ]
            for record in log.append(session, *attempts[: 1 + number % 2]):
                os.write(1, f"{record.id}\n".encode())
            taken = StreamChunkDelivered(delivery=name, through=len(text))
            log.append(session, taken, durable=False)
            if number % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1:
                log.database.checkpoint()


if __name__ == "__main__":
    main()
