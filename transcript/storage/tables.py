"""The tables that applications of eventsourcing have beside the log, in SQLAlchemy's words."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    Dialect,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import UserDefinedType


class OriginatorId(UserDefinedType[UUID | str]):
    """The id of an aggregate: 16 bytes for a UUID, text for a string, each given back as it came."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the column type; in SQLite one without an affinity."""
        return "BLOB"

    def bind_processor(self, dialect: Dialect) -> Any:  # noqa: ARG002
        """Return what makes a parameter of an id."""
        return lambda id: id.bytes if isinstance(id, UUID) else id

    def result_processor(
        self,
        dialect: Dialect,  # noqa: ARG002
        coltype: object,  # noqa: ARG002
    ) -> Any:
        """Return what makes an id of a value."""
        return lambda value: UUID(bytes=value) if isinstance(value, bytes) else value


class TaggedOriginatorId(OriginatorId):
    """The same where a column has one type: bytes whose first says what follows."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return PostgreSQL's column type."""
        return "BYTEA"

    def bind_processor(self, dialect: Dialect) -> Any:  # noqa: ARG002
        """Return what makes a parameter of an id."""
        return lambda id: b"u" + id.bytes if isinstance(id, UUID) else b"s" + id.encode()

    def result_processor(
        self,
        dialect: Dialect,  # noqa: ARG002
        coltype: object,  # noqa: ARG002
    ) -> Any:
        """Return what makes an id of a value."""
        return lambda value: UUID(bytes=value[1:]) if value[:1] == b"u" else value[1:].decode()


ORIGINATOR_ID = OriginatorId().with_variant(TaggedOriginatorId(), "postgresql")
NOTIFICATION_ID = BigInteger().with_variant(Integer(), "sqlite")
"""AUTOINCREMENT takes an INTEGER alone."""


def events_table(metadata: MetaData, name: str) -> Table:
    """Return a table of stored events without notifications, such as snapshots."""
    return Table(
        name,
        metadata,
        Column("originator_id", ORIGINATOR_ID, nullable=False),
        Column("originator_version", BigInteger, nullable=False),
        Column("topic", Text, nullable=False),
        Column("state", LargeBinary, nullable=False),
        PrimaryKeyConstraint("originator_id", "originator_version"),
        sqlite_with_rowid=False,
    )


def notifications_table(metadata: MetaData, name: str) -> Table:
    """Return a table of stored events in the order of their notification ids."""
    return Table(
        name,
        metadata,
        Column("notification_id", NOTIFICATION_ID, primary_key=True, autoincrement=True),
        Column("originator_id", ORIGINATOR_ID, nullable=False),
        Column("originator_version", BigInteger, nullable=False),
        Column("topic", Text, nullable=False),
        Column("state", LargeBinary, nullable=False),
        UniqueConstraint("originator_id", "originator_version"),
        sqlite_autoincrement=True,  # an id is never given twice
    )


def tracking_table(metadata: MetaData, name: str = "tracking") -> Table:
    """Return the table that says how far each application was followed."""
    return Table(
        name,
        metadata,
        Column("application_name", Text, primary_key=True),
        Column("notification_id", BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
