"""The recorders of eventsourcing on our database: originator = stream, notification = position."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    IntegrityError,
    ListenNotifySubscription,
    Notification,
    OperationalError,
    ProcessRecorder,
    Recorder,
    StoredEvent,
    Subscription,
    Tracking,
    TrackingRecorder,
)
from sqlalchemy import Executable, MetaData, Table, func, select
from sqlalchemy.schema import CreateTable

from onrecord.transcript.errors import OnRecordError
from onrecord.transcript.storage.database import Database
from onrecord.transcript.storage.tables import events_table, notifications_table, tracking_table

POLL = 0.005
"""Seconds between two looks for what other processes wrote."""
LONGEST_WAIT = 1.0
"""Seconds after which a subscription reads even if nothing seems to have come."""


class SQLRecorder(Recorder):
    """What all recorders have: the database, and the errors that eventsourcing expects."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self.database = database
        self.metadata = MetaData()

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Give the driver's connection in a write transaction, for views that keep tables of their own.

        Raise eventsourcing's IntegrityError or OperationalError, and nothing was stored.
        """
        try:
            with self.database.write(doing="recording") as connection:
                try:
                    yield connection
                except self.database.integrity_error as error:
                    raise IntegrityError(str(error)) from error
        except OnRecordError as error:
            raise OperationalError(str(error)) from error

    def rows(self, statement: Executable) -> Sequence[Any]:
        """Return the rows of a query."""
        try:
            return self.database.select("reading", lambda c: c.execute(statement).fetchall())
        except OnRecordError as error:
            raise OperationalError(str(error)) from error

    def create_table(self) -> None:
        """Create the tables that aren't there."""
        dialect = self.database.engine.dialect
        with self.transaction() as connection:
            _take_turns(connection, "tables")  # two that make one at once would meet
            for table in self.metadata.sorted_tables:
                statement = CreateTable(table, if_not_exists=True).compile(dialect=dialect)
                connection.execute(str(statement))

    def insert_statement(self, table: Table, *names: str) -> str:
        """Return the INSERT for these columns, for the driver."""
        places = ", ".join("?" * len(names))
        return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({places})"


class SQLAggregateRecorder(SQLRecorder, AggregateRecorder):
    """Stored events without notifications, such as snapshots."""

    def __init__(self, database: Database, events_table_name: str = "stored_events") -> None:
        super().__init__(database)
        self.events = self._events_table(events_table_name)
        names = ("originator_id", "originator_version", "topic", "state")
        self._insert = self.insert_statement(self.events, *names)
        dialect = database.engine.dialect
        bind = self.events.c.originator_id.type.dialect_impl(dialect).bind_processor(dialect)
        assert bind is not None
        self._id = bind

    def _events_table(self, name: str) -> Table:
        return events_table(self.metadata, name)

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Store the events in one transaction; raise IntegrityError if a version is taken."""
        with self.transaction() as connection:
            return self._insert_events(connection, stored_events, **kwargs)

    def _insert_events(
        self, connection: Any, stored_events: Sequence[StoredEvent], **_: Any
    ) -> Sequence[int] | None:
        connection.executemany(self._insert, [self._values(event) for event in stored_events])
        return None

    def _values(self, event: StoredEvent) -> tuple[Any, ...]:
        id = self._id(event.originator_id)
        return (id, event.originator_version, event.topic, event.state)

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return the events of an aggregate, by version."""
        columns = self.events.c
        statement = select(
            columns.originator_id, columns.originator_version, columns.topic, columns.state
        ).where(columns.originator_id == originator_id)
        if gt is not None:
            statement = statement.where(columns.originator_version > gt)
        if lte is not None:
            statement = statement.where(columns.originator_version <= lte)
        order = columns.originator_version
        statement = statement.order_by(order.desc() if desc else order).limit(limit)
        return [StoredEvent(*row) for row in self.rows(statement)]


class SQLApplicationRecorder(SQLAggregateRecorder, ApplicationRecorder):
    """Stored events with notifications: ids grow in the order of commits."""

    def _events_table(self, name: str) -> Table:
        return notifications_table(self.metadata, name)

    def _insert_events(
        self, connection: Any, stored_events: Sequence[StoredEvent], **_: Any
    ) -> Sequence[int] | None:
        _take_turns(connection, self.events.name)
        statement = f"{self._insert} RETURNING notification_id"
        return [
            connection.execute(statement, self._values(event)).fetchone()[0]
            for event in stored_events
        ]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return notifications from `start` on, in order."""
        columns = self.events.c
        position = columns.notification_id
        statement = select(
            columns.originator_id,
            columns.originator_version,
            columns.topic,
            columns.state,
            position,
        )
        if start is not None:
            statement = statement.where(
                position >= start if inclusive_of_start else position > start
            )
        if stop is not None:
            statement = statement.where(position <= stop)
        if topics:
            statement = statement.where(columns.topic.in_(topics))
        return [Notification(*row) for row in self.rows(statement.order_by(position).limit(limit))]

    def max_notification_id(self) -> int | None:
        """Return the newest notification id, None if there is none."""
        found: int | None = self.rows(select(func.max(self.events.c.notification_id)))[0][0]
        return found

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Follow the notifications after `gt`, through what other processes write too."""
        return SQLSubscription(self, self.database, gt=gt, topics=topics)


class SQLSubscription(ListenNotifySubscription[ApplicationRecorder]):
    """Reads at each commit, of this process or another, and at least each second."""

    def __init__(
        self,
        recorder: ApplicationRecorder,
        database: Database,
        gt: int | None = None,
        topics: Sequence[str] = (),
    ) -> None:
        super().__init__(recorder, gt=gt, topics=topics)
        self._database = database
        self._watch_thread = threading.Thread(target=self._watch, name="onrecord-watch")
        self._watch_thread.start()

    def _watch(self) -> None:
        try:
            database = self._database
            seen, version, waited = -1, -1, 0.0
            while not self._has_been_stopped:
                count, found = database.signal.count, database.data_version()
                if (count, found) != (seen, version) or waited >= LONGEST_WAIT:
                    seen, version, waited = count, found, 0.0
                    self._has_been_notified.set()
                database.signal.wait(seen, POLL)
                waited += POLL
        except OnRecordError as error:
            self._thread_error = OperationalError(str(error))
            self._thread_error.__cause__ = error
            super().stop()

    def stop(self) -> None:
        """Stop the subscription and its threads."""
        super().stop()
        watch = getattr(self, "_watch_thread", None)
        if watch is not None and watch is not threading.current_thread() and watch.is_alive():
            watch.join()


class SQLTrackingRecorder(SQLRecorder, TrackingRecorder):
    """How far each upstream application was followed; positions only grow."""

    def __init__(self, database: Database, **kwargs: Any) -> None:
        super().__init__(database, **kwargs)
        self.tracking = tracking_table(self.metadata)
        name = self.tracking.name
        self._track = (
            f"INSERT INTO {name} (application_name, notification_id) VALUES (?, ?) "
            "ON CONFLICT (application_name) DO UPDATE SET notification_id = excluded.notification_id "
            f"WHERE {name}.notification_id < excluded.notification_id"
        )

    def insert_tracking(self, tracking: Tracking) -> None:
        """Record a position; raise IntegrityError unless it is after the last one."""
        with self.transaction() as connection:
            self._insert_tracking(connection, tracking)

    def _insert_tracking(self, connection: Any, tracking: Tracking) -> None:
        parameters = (tracking.application_name, tracking.notification_id)
        if connection.execute(self._track, parameters).rowcount != 1:
            raise IntegrityError(
                f"{tracking.application_name} was followed to {tracking.notification_id} or beyond"
            )

    def max_tracking_id(self, application_name: str) -> int | None:
        """Return the newest position of an application, None if there is none."""
        columns = self.tracking.c
        statement = select(columns.notification_id).where(
            columns.application_name == application_name
        )
        rows = self.rows(statement)
        return int(rows[0][0]) if rows else None


class SQLProcessRecorder(SQLTrackingRecorder, SQLApplicationRecorder, ProcessRecorder):
    """Events and the position that they follow from, in one transaction."""

    def __init__(self, database: Database, *, events_table_name: str = "stored_events") -> None:
        super().__init__(database, events_table_name=events_table_name)

    def _insert_events(
        self, connection: Any, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        ids = super()._insert_events(connection, stored_events, **kwargs)
        tracking: Tracking | None = kwargs.get("tracking")
        if tracking is not None:
            self._insert_tracking(connection, tracking)
        return ids


def _take_turns(connection: Any, name: str) -> None:
    """Let nobody else past here until the commit: who reads by id must not miss one committed late."""
    if connection.dialect.in_turn:
        connection.execute(connection.dialect.in_turn, (name,))
