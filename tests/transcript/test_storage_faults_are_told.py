"""A fault of the storage is a typed error that says what was stored, and the log goes on after it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from onrecord.transcript.errors import AppendInDoubt, StorageBusy, StorageFailed
from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage import dbapi, files
from onrecord.transcript.storage.sqlite import READERS, READERS_MORE, SQLiteDatabase
from onrecord.transcript.verify import verify

IOERR_FSYNC = 1034


def said(message: str) -> UserMessageReceived:
    return UserMessageReceived(message=message, text="hi")


def child(code: str, *arguments: str, prefix: tuple[str, ...] = ()) -> str:
    """Run code in a child process; return what it printed."""
    done = subprocess.run(
        [*prefix, sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_held_write_lock_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with TranscriptLog.open(path, busy_timeout=0.2) as log:
        other = dbapi.connect(str(path), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()

        with pytest.raises(StorageBusy) as caught:
            log.append("s", said("m"))

        assert caught.value.waited >= 0.2
        assert time.monotonic() - began < 5
        assert (caught.value.stored, caught.value.may_retry) == ("no", True)
        assert list(log.read("s")) == []
        other.execute("ROLLBACK")
        other.close()
        assert log.append("s", said("m"))[0].version == 1


def test_too_many_selects_at_once_are_busy(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db", busy_timeout=0.1) as log:
        engine = log.database.engine
        taken = [engine.connect() for _ in range(READERS + READERS_MORE)]

        with pytest.raises(StorageBusy, match="too many reads") as caught:
            log.database.select("reading", lambda connection: connection.info)

        assert caught.value.waited >= 0.1
        for connection in taken:
            connection.close()


def test_a_read_that_ends_after_the_close_leaves_no_connection(tmp_path: Path) -> None:
    log = TranscriptLog.open(tmp_path / "log.db")

    def read(connection: Any) -> Any:
        log.close()
        return connection

    connection = log.database.read("reading", read)

    with pytest.raises(dbapi.Error, match="closed"):
        connection.execute("SELECT 1")
    with pytest.raises(StorageFailed, match="closed") as caught:
        log.append("s", said("m"))
    assert not caught.value.may_retry


class FaultyCommit:
    """A connection whose next commit fails with an error of the disk, after it happened or before."""

    def __init__(self, connection: Any, *, happened: bool, then: Any = None) -> None:
        self._connection = connection
        self._happened = happened
        self._then = then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, *parameters: Any) -> Any:
        if statement != "COMMIT":
            return self._connection.execute(statement, *parameters)
        self._connection.execute("COMMIT" if self._happened else "ROLLBACK")
        if self._then is not None:
            self._then()
        error: Any = dbapi.driver.OperationalError("disk I/O error")
        error.sqlite_errorcode = IOERR_FSYNC
        error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
        raise error


@pytest.mark.faults
@pytest.mark.parametrize("happened", [True, False])
def test_an_unclear_commit_is_looked_up(tmp_path: Path, happened: bool) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        log.append("s", said("m1"))
        database = log.database
        assert isinstance(database, SQLiteDatabase)
        database._writer = FaultyCommit(database._writer, happened=happened)

        if happened:
            assert [r.version for r in log.append("s", said("m2"), said("m3"))] == [2, 3]
        else:
            with pytest.raises(StorageFailed) as caught:
                log.append("s", said("m2"), said("m3"))
            assert (caught.value.stored, caught.value.may_retry) == ("no", True)
            assert log.version("s") == 1

        assert [r.version for r in log.append("s", said("m2"), said("m3"))] == [2, 3]
        assert verify(log).faults == []


@pytest.mark.faults
@pytest.mark.parametrize("happened", [True, False])
def test_a_lease_whose_commit_is_unclear_is_taken_again(tmp_path: Path, happened: bool) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        log.append("s", said("m1"))
        database = log.database
        assert isinstance(database, SQLiteDatabase)
        database._writer = FaultyCommit(database._writer, happened=happened)

        lease = log.leases.acquire("s", "bot")

        assert lease.generation == (2 if happened else 1)
        log.leases.check(lease)


@pytest.mark.faults
def test_doubt_reaches_the_caller_only_when_the_storage_stays_away(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with TranscriptLog.open(path, busy_timeout=0.2) as log:
        log.append("s", said("m1"))
        database = log.database
        assert isinstance(database, SQLiteDatabase)

        def away() -> None:
            path.rename(tmp_path / "away.db")

        database._writer = FaultyCommit(database._writer, happened=True, then=away)
        with pytest.raises(AppendInDoubt) as caught:
            log.append("s", said("m2"))

        assert (caught.value.stored, caught.value.may_send) == ("unknown", False)
        (tmp_path / "away.db").rename(path)
        assert log.append("s", said("m2"))[0].version == 2


FULL = """
import sys
from onrecord.transcript.errors import StorageFull
from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.verify import verify

def said(n, size):
    return UserMessageReceived(message=f"m{n}", text="x" * size)

with TranscriptLog.open(sys.argv[1] + "/log.db") as log:
    LIMIT
    told = 0
    try:
        for n in range(1000):
            log.append("s", said(n, 5000))
            told += 1
    except StorageFull as error:
        assert (error.stored, error.may_retry) == ("no", True), error.stored
    else:
        raise AssertionError("never full")
    assert log.version("s") == told > 0, (log.version("s"), told)
    FREE
    log.append("s", said(told, 5000))
    assert verify(log).faults == []
    print(log.version("s") - told)
"""


@pytest.mark.faults
def test_a_file_that_may_not_grow_is_full(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    limit = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (400_000, r.RLIM_INFINITY))"
    free = "r.setrlimit(r.RLIMIT_FSIZE, (r.RLIM_INFINITY, r.RLIM_INFINITY))"

    assert child(FULL.replace("LIMIT", limit).replace("FREE", free), str(tmp_path)) == "1\n"


@pytest.mark.faults
def test_a_full_disk_is_full(tmp_path: Path) -> None:
    mount = f'mount -t tmpfs -o size=1m none {tmp_path} && exec "$@"'
    prefix = ("unshare", "-Urm", "sh", "-c", mount, "sh")
    if (
        not shutil.which("unshare")
        or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no small file system can be made here")
    ballast = "open(sys.argv[1] + '/ballast', 'wb').write(bytes(300_000))"
    free = "import os; os.unlink(sys.argv[1] + '/ballast')"
    code = FULL.replace("LIMIT", ballast).replace("FREE", free)

    assert child(code, str(tmp_path), prefix=prefix) == "1\n"


READ_ONLY = """
import os, sys
from onrecord.transcript.errors import StorageFailed
from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog

if os.getuid() == 0:
    TranscriptLog.open("sqlite://").close()  # what is imported late may be out of reach below
    os.setuid(65534)
with TranscriptLog.open(sys.argv[1]) as log:
    assert [r.version for r in log.read("s")] == [1]
    try:
        log.append("s", UserMessageReceived(message="m2", text="x"))
    except StorageFailed as error:
        assert error.stored == "no"
        print("refused")
"""


@pytest.mark.faults
def test_a_read_only_file_is_read_and_not_written() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "log.db"
        with TranscriptLog.open(path) as log:
            log.append("s", said("m1"))
        folder.chmod(0o777)
        path.chmod(0o444)

        assert child(READ_ONLY, str(path)) == "refused\n"


def test_a_failed_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with TranscriptLog.open(path) as log:
        log.append("s", *(said(f"m{n}") for n in range(500)))
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))

    with pytest.raises(StorageFailed), TranscriptLog.open(path) as log:
        list(log.read("s"))


FORK = """
import os, sys
from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.verify import verify

def said(m):
    return UserMessageReceived(message=m, text="x")

with TranscriptLog.open(sys.argv[1]) as log:
    log.append("s", said("parent 1"))
    list(log.read("s"))
    pid = os.fork()
    if pid == 0:
        for n in range(50):
            log.append("s", said(f"child {n}"))
        log.close()
        os._exit(0)
    for n in range(50):
        log.append("s", said(f"parent again {n}"))
    assert os.waitpid(pid, 0)[1] == 0
    log.append("s", said("parent 2"))
    assert [r.version for r in log.read("s")] == list(range(1, 103))
    assert verify(log).faults == []
    print(log.version("s"))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_has_connections_of_its_own(tmp_path: Path) -> None:
    assert child(FORK, str(tmp_path / "log.db")) == "102\n"


def test_openers_at_once_make_one_log(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom onrecord.transcript.log import TranscriptLog\n"
        "from onrecord.transcript.events import UserMessageReceived as M\n"
        "time.sleep(max(0, float(sys.argv[2]) - time.time()))\n"
        "log = TranscriptLog.open(sys.argv[1])\n"
        "log.append('s', M(message=sys.argv[3], text='x'))\nlog.close()\n"
    )
    start = time.time() + 1.5
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    openers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "log.db"), str(start), f"m{n}"],
            env=environment,
        )
        for n in range(4)
    ]

    assert [opener.wait(60) for opener in openers] == [0] * 4
    with TranscriptLog.open(tmp_path / "log.db", create=False) as log:
        assert [r.version for r in log.read("s")] == [1, 2, 3, 4]


@pytest.mark.parametrize("moved", ["log.db", "log.db-wal", "log.db-shm"])
def test_a_file_that_is_moved_while_nothing_else_changes_is_noticed(
    tmp_path: Path, moved: str
) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        log.append("s", said("m1"))
        longer_ago = time.time_ns() - 10 * files.SETTLED
        os.utime(tmp_path, ns=(longer_ago, longer_ago))  # the folder changed long ago
        log.append("s", said("m2"))
        log.append("s", said("m3"))

        (tmp_path / moved).rename(tmp_path / "away")
        with pytest.raises(StorageFailed):
            log.append("s", said("m4"))

        (tmp_path / "away").rename(tmp_path / moved)
        assert [r.version for r in log.append("s", said("m4"))] == [4]


def test_a_write_that_was_interrupted_is_rolled_back(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with TranscriptLog.open(path) as log, TranscriptLog.open(path, busy_timeout=1) as other:
        interrupted = log.database.write(doing="a write")
        interrupted.__enter__().execute("UPDATE flushes SET count = 99")

        del interrupted  # as a KeyboardInterrupt leaves it that came before the end of the write
        assert log.append("s", said("m"))[0].version == 1

        counted = log.database.read(
            "asking", lambda c: c.execute("SELECT count FROM flushes").fetchone()[0]
        )
        assert counted != 99
        assert other.append("s", said("n"))[0].version == 2


def test_a_write_within_a_write_is_refused_and_the_outer_goes_on(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        with log.database.write() as connection:
            connection.execute("UPDATE flushes SET count = 99")
            with pytest.raises(StorageFailed, match="within another write"):
                log.append("s", said("m"))

        counted = log.database.read(
            "asking", lambda c: c.execute("SELECT count FROM flushes").fetchone()[0]
        )
        assert counted == 99
        assert log.append("s", said("m"))[0].version == 1
