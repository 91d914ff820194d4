"""A log in PostgreSQL passes the contract of a shared storage."""

from __future__ import annotations

import pytest

from onrecord.transcript.testing import SharedLogContract


@pytest.mark.contract
class TestPostgres(SharedLogContract):
    @pytest.fixture(autouse=True)
    def _place(self, postgres_url: str) -> None:
        self.url = postgres_url
