"""Every base case that eventsourcing ships for persistence passes on each of our storages."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar
from unittest import TestCase
from uuid import uuid4

import eventsourcing.tests.application as application_cases
import eventsourcing.tests.persistence as persistence_cases
import eventsourcing.tests.projection as projection_cases
import pytest
from eventsourcing.persistence import InfrastructureFactory, Tracking
from eventsourcing.utils import Environment
from postgres_server import Server

from onrecord.transcript.storage import Factory
from onrecord.transcript.storage.opening import open_database
from onrecord.transcript.storage.recorders import (
    SQLAggregateRecorder,
    SQLApplicationRecorder,
    SQLProcessRecorder,
    SQLRecorder,
    SQLTrackingRecorder,
)

WITHOUT_US = {
    "TranscoderTestCase": "holds a transcoder of the library's own, not a storage",
    "TaggedDecisionCountersProjectionTestCase": "needs a DCB recorder, another interface",
}
"""The library's cases that don't apply, with the reason."""


class InEachStorage(TestCase):
    """Makes databases for a case, and closes them."""

    __test__ = False  # test_shipped_case runs each case, on all kinds
    kind: ClassVar[str]
    folder: ClassVar[Path]
    server: ClassVar[Server | None]

    def __init__(self, method: str) -> None:
        super().__init__(method)
        self._made = ExitStack()

    def tearDown(self) -> None:
        super().tearDown()
        self._made.close()

    def url(self) -> str:
        if self.server is not None:
            return self._made.enter_context(self.server.database())
        return "sqlite://" if self.kind == "memory" else f"sqlite:///{self.folder}/{uuid4().hex}.db"

    def made(self, kind: type[SQLRecorder]) -> Any:
        database = open_database(self.url())
        self._made.callback(database.close)
        recorder = kind(database)
        recorder.create_table()
        return recorder


class Aggregates(InEachStorage, persistence_cases.AggregateRecorderTestCase):
    def create_recorder(self) -> Any:
        return self.made(SQLAggregateRecorder)


class Applications(InEachStorage, persistence_cases.ApplicationRecorderTestCase[Any]):
    def create_recorder(self) -> Any:
        return self.made(SQLApplicationRecorder)


class Trackings(InEachStorage, persistence_cases.TrackingRecorderTestCase):
    def create_recorder(self) -> Any:
        return self.made(SQLTrackingRecorder)


class Processes(InEachStorage, persistence_cases.ProcessRecorderTestCase):
    def create_recorder(self) -> Any:
        return self.made(SQLProcessRecorder)


class NotInterleaving(InEachStorage, persistence_cases.NonInterleavingNotificationIDsBaseCase):
    def create_recorder(self) -> Any:
        return self.made(SQLApplicationRecorder)


class OtherTrackingRecorder(SQLTrackingRecorder):
    pass


class Factories(InEachStorage, persistence_cases.InfrastructureFactoryTestCase[Factory]):
    def setUp(self) -> None:
        self.env = Environment("Application1", self.environment())
        super().setUp()

    def environment(self) -> dict[str, str]:
        return {
            InfrastructureFactory.PERSISTENCE_MODULE: "onrecord.transcript.storage",
            Factory.ONRECORD_DB: self.url(),
        }

    def expected_factory_class(self) -> type[Factory]:
        return Factory

    def expected_aggregate_recorder_class(self) -> type[SQLAggregateRecorder]:
        return SQLAggregateRecorder

    def expected_application_recorder_class(self) -> type[SQLApplicationRecorder]:
        return SQLApplicationRecorder

    def expected_tracking_recorder_class(self) -> type[SQLTrackingRecorder]:
        return SQLTrackingRecorder

    def tracking_recorder_subclass(self) -> type[SQLTrackingRecorder]:
        return OtherTrackingRecorder

    def expected_process_recorder_class(self) -> type[SQLProcessRecorder]:
        return SQLProcessRecorder


class Counters(SQLTrackingRecorder, projection_cases.EventCountersInterface):
    """A view that keeps its counters and its position in one transaction."""

    def create_table(self) -> None:
        super().create_table()
        with self.transaction() as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, n INTEGER NOT NULL)"
            )

    def _get(self, name: str) -> int:
        statement = "SELECT n FROM counters WHERE name = ?"
        row = self.database.read("counting", lambda c: c.execute(statement, (name,)).fetchone())
        return row[0] if row else 0

    def _add(self, name: str, tracking: Tracking) -> None:
        with self.transaction() as connection:
            self._insert_tracking(connection, tracking)
            connection.execute(
                "INSERT INTO counters VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET n = counters.n + 1",
                (name,),
            )

    def get_created_event_counter(self) -> int:
        return self._get("created")

    def get_subsequent_event_counter(self) -> int:
        return self._get("subsequent")

    def incr_created_event_counter(self, tracking: Tracking) -> None:
        self._add("created", tracking)

    def incr_subsequent_event_counter(self, tracking: Tracking) -> None:
        self._add("subsequent", tracking)


class Views(InEachStorage, projection_cases.EventCountersViewTestCase):
    def construct_event_counters_view(self) -> Any:
        return self.made(Counters)


class Environments(InEachStorage):
    """Sets the environment for cases that read it."""

    def setUp(self) -> None:
        super().setUp()
        os.environ["PERSISTENCE_MODULE"] = "onrecord.transcript.storage"
        os.environ["ONRECORD_DB"] = self.url()
        # A projection that stored its own events upstream would follow itself without end.
        os.environ["COUNTERS_ONRECORD_DB"] = self.url()

    def tearDown(self) -> None:
        for name in ("PERSISTENCE_MODULE", "ONRECORD_DB", "COUNTERS_ONRECORD_DB"):
            del os.environ[name]
        super().tearDown()


class ProjectionRunners(Environments, projection_cases.AggregateEventCountersProjectionTestCase):
    view_class = Counters


class SourcedProjections(Environments, projection_cases.EventSourcedProjectionTestCase):
    pass


class ExampleApplications(Environments, application_cases.ExampleApplicationTestCase):
    expected_factory_topic = "onrecord.transcript.storage.factory:Factory"


class AnyApplication(Environments, application_cases.ApplicationTestCase):
    pass


OURS = [
    case
    for case in list(globals().values())
    if isinstance(case, type)
    and issubclass(case, InEachStorage)
    and case.__mro__[1] is not TestCase
    and any(base.__module__.startswith("eventsourcing.tests") for base in case.__mro__)
]


def _shipped() -> dict[str, type[TestCase]]:
    return {
        name: case
        for module in (persistence_cases, projection_cases, application_cases)
        for name, case in inspect.getmembers(module, inspect.isclass)
        if issubclass(case, TestCase) and case.__module__ == module.__name__
        if any(method.startswith("test") for method in dir(case))
    }


def _runs() -> Iterator[Any]:
    for case in OURS:
        for kind in ("memory", "file", "postgres"):
            for method in sorted(name for name in dir(case) if name.startswith("test")):
                yield pytest.param(case, kind, method, id=f"{case.__name__}-{kind}-{method}")


@pytest.mark.contract
@pytest.mark.parametrize(("case", "kind", "method"), list(_runs()))
def test_shipped_case(
    case: type[InEachStorage],
    kind: str,
    method: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    server = request.getfixturevalue("postgres_server") if kind == "postgres" else None
    names = {"kind": kind, "folder": tmp_path, "server": server}
    of_kind = type(case.__name__, (case,), names)
    test = of_kind(method)

    test.debug()


def test_no_shipped_case_is_left_out() -> None:
    inherited = {base.__name__ for case in OURS for base in case.__mro__}

    assert set(_shipped()) - inherited == set(WITHOUT_US)
