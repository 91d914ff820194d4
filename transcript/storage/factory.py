"""What eventsourcing makes its recorders with: PERSISTENCE_MODULE=onrecord.transcript.storage."""

from __future__ import annotations

from typing import TypeVar

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    InfrastructureFactory,
    InfrastructureFactoryError,
    ProcessRecorder,
)
from eventsourcing.utils import Environment, EnvType, resolve_topic, strtobool

from onrecord.transcript.storage.database import BUSY_TIMEOUT
from onrecord.transcript.storage.opening import open_database
from onrecord.transcript.storage.recorders import (
    SQLAggregateRecorder,
    SQLApplicationRecorder,
    SQLProcessRecorder,
    SQLRecorder,
    SQLTrackingRecorder,
)

R = TypeVar("R", bound=SQLRecorder)


class Factory(InfrastructureFactory[SQLTrackingRecorder]):
    """Makes recorders on the database that ONRECORD_DB names (default: sqlite:///onrecord.db).

    Other settings: ONRECORD_BUSY_TIMEOUT (seconds), CREATE_TABLE (yes), and the library's topics of
    recorder classes. Ids of aggregates may be UUIDs or strings.
    """

    ONRECORD_DB = "ONRECORD_DB"
    ONRECORD_BUSY_TIMEOUT = "ONRECORD_BUSY_TIMEOUT"
    CREATE_TABLE = "CREATE_TABLE"

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        url = self.env.get(self.ONRECORD_DB) or "sqlite:///onrecord.db"
        seconds = self.env.get(self.ONRECORD_BUSY_TIMEOUT) or str(BUSY_TIMEOUT)
        try:
            timeout = float(seconds)
        except ValueError:
            raise InfrastructureFactoryError(
                f"{self.ONRECORD_BUSY_TIMEOUT} is {seconds!r}; give seconds"
            ) from None
        self.database = open_database(url, busy_timeout=timeout)

    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        """Return a recorder without notifications; `purpose` names its table."""
        return self._made(SQLAggregateRecorder(self.database, f"stored_{purpose}"))

    def application_recorder(self) -> ApplicationRecorder:
        """Return a recorder with notifications."""
        kind = self._class(self.APPLICATION_RECORDER_TOPIC, SQLApplicationRecorder)
        return self._made(kind(self.database))

    def tracking_recorder(
        self, tracking_recorder_class: type[SQLTrackingRecorder] | None = None
    ) -> SQLTrackingRecorder:
        """Return a recorder of positions, or a view that is one."""
        kind = tracking_recorder_class
        if kind is None:
            kind = self._class(self.TRACKING_RECORDER_TOPIC, SQLTrackingRecorder)
        return self._made(kind(self.database))

    def process_recorder(self) -> ProcessRecorder:
        """Return a recorder of events and of the positions that they follow from."""
        kind = self._class(self.PROCESS_RECORDER_TOPIC, SQLProcessRecorder)
        return self._made(kind(self.database))

    def _class(self, setting: str, default: type[R]) -> type[R]:
        topic = self.env.get(setting)
        if not topic:
            return default
        found = resolve_topic(topic)
        if not (isinstance(found, type) and issubclass(found, default)):
            raise InfrastructureFactoryError(
                f"{setting} names {topic}, which is no subclass of {default.__qualname__}"
            )
        return found

    def _made(self, recorder: R) -> R:
        if strtobool(self.env.get(self.CREATE_TABLE, "yes") or "yes"):
            recorder.create_table()
        return recorder

    def close(self) -> None:
        """Close the database."""
        self.database.close()


__all__ = ["Factory"]
