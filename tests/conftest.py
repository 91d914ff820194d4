"""What holds for every test: nothing of ours is importable but through `onrecord`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from postgres_server import Server, running_server

ROOT = Path(__file__).resolve().parent.parent

# `python -m pytest` puts the current folder first, and then `import agent` means our folder agent/.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]

# The machine is often shared, so no example fails for being slow: limits on time are the suite's.
_calm = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("quick", deadline=None, suppress_health_check=_calm)
settings.register_profile("soak", deadline=None, suppress_health_check=_calm, max_examples=5_000)
settings.load_profile(os.environ.get("ONRECORD_HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """Give the PostgreSQL server of this run (of this worker, where there are several)."""
    with running_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: Server) -> Iterator[str]:
    """Give the URL of an empty PostgreSQL database."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def each_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of an empty database, of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/log.db"
    url: str = request.getfixturevalue("postgres_url")
    return url
