"""Several writers on one log, with retries, repeats and contradictions: nothing is lost or doubled."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from postgres_server import Server

from histories import EVENTS
from onrecord.projections.conversation import Conversation, project
from onrecord.projections.profiles import PROFILES, render, violations
from onrecord.projections.promise import check
from onrecord.transcript.errors import KeyConflict, OffsetMismatch
from onrecord.transcript.events import Event
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.verify import verify

WRITERS = 3


class Writers(RuleBasedStateMachine):
    """Three logs on one database, as three processes have them, and what each was told."""

    def place(self) -> str:
        """Return the URL of a new log."""
        return f"sqlite:///{self.made.enter_context(tempfile.TemporaryDirectory())}/log.db"

    @initialize()
    def open(self) -> None:
        self.made = ExitStack()
        url = self.place()
        self.logs = [self.made.enter_context(TranscriptLog.open(url)) for _ in range(WRITERS)]
        self.told: list[Recorded] = []
        self.said: list[Event] = []
        self.followed = Conversation()

    def _append(self, writer: int, *events: Event, durable: bool = True) -> None:
        before = self.logs[0].version("s")
        try:
            self.told += self.logs[writer].append("s", *events, durable=durable)
        except (KeyConflict, OffsetMismatch):
            assert self.logs[0].version("s") == before
        else:
            self.said += events

    @rule(writer=st.integers(0, WRITERS - 1), event=EVENTS, durable=st.booleans())
    def say(self, writer: int, event: Event, durable: bool) -> None:
        self._append(writer, event, durable=durable)

    @rule(writer=st.integers(0, WRITERS - 1), events=st.lists(EVENTS, min_size=2, max_size=4))
    def say_several(self, writer: int, events: list[Event]) -> None:
        self._append(writer, *events)

    @rule(writer=st.integers(0, WRITERS - 1), data=st.data())
    def retry(self, writer: int, data: st.DataObject) -> None:
        """The same event again is the same record, whoever says it."""
        if not self.told:
            return
        record = data.draw(st.sampled_from(self.told))
        before = self.logs[0].version("s")

        (again,) = self.logs[writer].append("s", record.event)

        assert (again.version, again.id) == (record.version, record.id)
        assert self.logs[0].version("s") == before

    @invariant()
    def what_was_told_stands(self) -> None:
        records = list(self.logs[0].read("s"))
        by_id = {record.id: record for record in records}
        assert [record.version for record in records] == list(range(1, len(records) + 1))
        assert len(by_id) == len(records)
        for told in self.told:
            assert by_id[told.id].version == told.version

    @invariant()
    def the_promise_holds_for_every_reader(self) -> None:
        for record in self.logs[1].read("s", after=self.followed.version):
            self.followed.apply(record)
        records = list(self.logs[2].read("s"))
        for full in (False, True):
            rows = self.followed.rows(full=full)
            assert rows == project(records, full=full)
            check("s", records, rows, full=full)
            for profile in PROFILES:
                assert violations(profile, render(rows, profile)) == []

    def teardown(self) -> None:
        if hasattr(self, "logs"):
            with self.made:
                assert verify(self.logs[0]).faults == []


class PostgresWriters(Writers):
    """The same on a server."""

    server: ClassVar[Server]

    def place(self) -> str:
        return self.made.enter_context(self.server.database())


TestWriters = Writers.TestCase
TestWriters.settings = settings(
    max_examples=settings().max_examples // 4, deadline=None, stateful_step_count=25
)


@pytest.fixture
def on_a_server(postgres_server: Server) -> None:
    PostgresWriters.server = postgres_server


TestPostgresWriters = pytest.mark.usefixtures("on_a_server")(PostgresWriters.TestCase)
TestPostgresWriters.settings = settings(
    max_examples=settings().max_examples // 10, deadline=None, stateful_step_count=25
)
