"""The peers, each in an environment of its own: `python peers.py` installs what is missing.

They stand in the folder that $PEERS names, else in `peers` of the system's temporary folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(os.environ.get("PEERS") or Path(tempfile.gettempdir(), "peers"))


@dataclass(frozen=True)
class Peer:
    """A store of others. `packages`: what pip installs for it, the first being the peer itself."""

    store: str
    variants: tuple[str, ...]
    environment: str
    packages: tuple[str, ...]

    @property
    def python(self) -> Path:
        return FOLDER / self.environment / "bin" / "python"

    @property
    def is_installed(self) -> bool:
        return self.python.exists()

    @property
    def package(self) -> str:
        return self.packages[0].partition("[")[0]

    def version(self) -> str | None:
        """Return the version that is installed, None where there is none."""
        if not self.is_installed:
            return None
        code = f"from importlib.metadata import version; print(version({self.package!r}))"
        done = subprocess.run(
            [self.python, "-c", code], check=False, capture_output=True, text=True
        )
        return done.stdout.strip() or None


PEERS = (
    Peer("hermes", ("default",), "hermes", ("hermes-agent",)),
    Peer(
        "openai_agents",
        ("sqlite", "sqlalchemy"),
        "openai-agents",
        ("openai-agents", "sqlalchemy", "aiosqlite", "greenlet"),
    ),
    Peer(
        "langchain_sql",
        ("default",),
        "langchain",
        ("langchain-community", "sqlalchemy", "greenlet"),
    ),
    Peer(
        "langgraph_sqlite",
        ("default",),
        "langgraph",
        ("langgraph-checkpoint-sqlite", "langgraph", "langchain-core"),
    ),
    Peer("adk", ("default",), "adk", ("google-adk[db]", "aiosqlite")),
    Peer("eventsourcing_app", ("held",), "eventsourcing", ("eventsourcing",)),
)


def install(peer: Peer) -> bool:
    """Install a peer; say what pip says where it can't be, and return False."""
    print(f"installing {' '.join(peer.packages)} into {FOLDER / peer.environment}", file=sys.stderr)
    venv.create(FOLDER / peer.environment, with_pip=True)
    pip = [str(peer.python), "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
    return subprocess.run([*pip, *peer.packages], check=False).returncode == 0


def main() -> None:
    failed = [peer.store for peer in PEERS if peer.version() is None and not install(peer)]
    for peer in PEERS:
        print(f"{peer.package} {peer.version() or 'is missing'}")
    if failed:
        sys.exit(f"could not be installed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
