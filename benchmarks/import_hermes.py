"""A million messages of a Hermes database into an SQLite log: `make bench-import`.

The database is made with Hermes's own schema, by its own Python (`make bench-peers` installs it); the rows
are inserted by plain SQL. What is told: time, processor time of this process and of the one that reads
ahead, the most memory that each held; and the same for reading alone, without a log.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from onrecord.transcript.importers import hermes
from onrecord.transcript.importers.batches import batches
from onrecord.transcript.importers.running import import_source
from onrecord.transcript.log import TranscriptLog
from peers import PEERS

TEXT_LIMIT = 1 << 20

# A turn is a question of 80 characters, a call of a tool, its result of 600, an answer of 400, as in W1. In
# one session of the lot stands a half of all turns; the others have 20 each and are written in turn.
MAKE = """
import json, sys
from pathlib import Path
from hermes_state import SessionDB
path, turns = Path(sys.argv[1]), int(sys.argv[2])
db = SessionDB(path)
connection = db._conn
sessions = ["long"] + [f"s{n}" for n in range(max(1, turns // 2 // 20))]
for name in sessions:
    db.create_session(name, "telegram", user_id="u", chat_id=name, session_key=name, chat_type="dm")
connection.execute("PRAGMA synchronous=OFF")
for trigger in connection.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
    connection.execute(f"DROP TRIGGER {trigger[0]}")
def rows():
    at = 1.7e9
    for n in range(turns):
        session = "long" if n % 2 else sessions[1 + n // 2 % (len(sessions) - 1)]
        call = f"call_{n}"
        calls = json.dumps([{"id": call, "call_id": call, "type": "function", "function": {
            "name": "terminal", "arguments": json.dumps({"command": "ls -l"})}}])
        yield session, "user", f"{n} ".ljust(80, "q"), None, None, None, at, None
        yield session, "assistant", None, None, calls, None, at + 1, "tool_calls"
        yield session, "tool", f"{n} ".ljust(600, "r"), call, None, "terminal", at + 2, None
        yield session, "assistant", f"{n} ".ljust(400, "a"), None, None, None, at + 3, "stop"
        at += 4
connection.execute("BEGIN")
connection.executemany("INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls,"
    " tool_name, timestamp, finish_reason, active) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)", rows())
connection.execute("COMMIT")
db.close()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where the files are made (default: temporary)")
    parser.add_argument("--source", type=Path, help="a database that is there already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        source = options.source or made(Path(folder), options.messages)
        measured("reading alone", lambda: read(source))
        measured("into an SQLite log", lambda: imported(source, Path(folder)))


def made(folder: Path, messages: int) -> Path:
    """Make a database with Hermes's schema, and return it."""
    peer = next(peer for peer in PEERS if peer.package == "hermes-agent")
    if not peer.is_installed:
        sys.exit("hermes-agent isn't installed; run `make bench-peers`")
    path = folder / "state.db"
    environment = {"HERMES_HOME": str(folder), "HOME": str(folder), "PATH": "/usr/bin:/bin"}
    command = [str(peer.python), "-c", MAKE, str(path), str(messages // 4)]
    subprocess.run(command, check=True, env=environment)
    print(f"{messages // 4 * 4:,} messages, {path.stat().st_size / 1e6:,.0f} MB")
    return path


def read(source: Path) -> int:
    """Read a source to its end and make its events storable; return how many messages it has."""
    return sum(batch.messages for batch in batches(hermes, source, TEXT_LIMIT))


def imported(source: Path, folder: Path) -> int:
    """Import a source into a new log; return how many messages it had."""
    with TranscriptLog.open(f"sqlite:///{folder}/log.db") as log:
        done = import_source(log, hermes, source)
    size = sum(file.stat().st_size for file in folder.glob("log.db*"))
    print(f"  {done.added:,} events, a log of {size / 1e6:,.0f} MB")
    return done.messages


def measured(what: str, work: Callable[[], int]) -> None:
    """Do something in a process of its own, and print what it took."""
    process = multiprocessing.get_context("fork").Process(target=_measure, args=(what, work))
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(f"{what}: it failed")


def _measure(what: str, work: Callable[[], int]) -> None:
    began = time.perf_counter()
    messages = work()
    took = time.perf_counter() - began
    ours, child = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    own, theirs = ours.ru_utime + ours.ru_stime, child.ru_utime + child.ru_stime
    print(
        f"{what}: {messages:,} messages in {took:.1f} s, {messages / took:,.0f}/s; processor "
        f"{own:.1f} s here ({messages / own:,.0f}/s), {theirs:.1f} s reading ahead; at most "
        f"{ours.ru_maxrss / 1e3:,.0f} + {child.ru_maxrss / 1e3:,.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    main()
