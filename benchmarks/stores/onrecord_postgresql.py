"""Our own log on PostgreSQL; variants as on SQLite. $DATABASE_URL says where the server is."""

from __future__ import annotations

import os
from pathlib import Path

from store import Store
from stores.onrecord_log import OnRecord


def open_store(folder: Path, variant: str) -> Store:
    return OnRecord(folder, variant, os.environ["DATABASE_URL"])
