"""Tables as Parquet. It takes pyarrow, an extra: import this module only where that is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TextIO

import pyarrow as pa  # type: ignore[import-not-found,import-untyped,unused-ignore]
import pyarrow.parquet as pq  # type: ignore[import-not-found,import-untyped,unused-ignore]

from onrecord.projections.pages.tabular import Column, Kind, Row

ROWS_AT_ONCE = 10_000
"""Rows of a group, which is what is kept in memory."""

_TYPES: dict[Kind, pa.DataType] = {
    "text": pa.string(),
    "number": pa.int64(),
    "flag": pa.bool_(),
    "time": pa.timestamp("us", tz="UTC"),
    "texts": pa.list_(pa.string()),
    "numbers": pa.list_(pa.int64()),
}


def write_parquet(columns: Sequence[Column], rows: Iterable[Row], out: TextIO) -> None:
    """Write rows, a group at a time; every text as it is."""
    schema = pa.schema([(column.name, _TYPES[column.kind]) for column in columns])
    left = iter(rows)
    with pq.ParquetWriter(out.buffer, schema, compression="zstd") as writer:
        while some := list(islice(left, ROWS_AT_ONCE)):
            cells = zip(*some, strict=True)
            arrays = [
                pa.array(list(values), type=field.type)
                for values, field in zip(cells, schema, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
