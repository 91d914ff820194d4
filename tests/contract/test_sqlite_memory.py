"""A log in memory passes the contract of a storage."""

from __future__ import annotations

import pytest

from onrecord.transcript.testing import LogContract


@pytest.mark.contract
class TestSQLiteMemory(LogContract):
    url = "sqlite://"
