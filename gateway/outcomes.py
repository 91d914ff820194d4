"""How a delivery stands, and what a sender can know after a send that didn't succeed.

    SendError
    ├── NotSent        nothing reached the socket: definite, the same text may go again
    ├── SendRefused    the platform said no: definite, again only with other bytes (plain text)
    ├── RateLimited    the platform said later: definite, the same text after `retry_after` seconds
    └── SendInDoubt    it may have been taken: not definite, again only where a repeat can't show twice

A platform adapter raises one of them, or lets its HTTP client's own error through: `classify` knows
the standard library's, httpx's, requests' and aiohttp's.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from onrecord.transcript.errors import AppendRefused, OnRecordError

State = Literal[
    "open", "delivered", "empty", "refused", "not_sent", "waiting", "in_doubt", "stopped"
]

REQUEST_TIMEOUT = 408
TOO_MANY_REQUESTS = 429
DEFAULT_RETRY_AFTER = 1.0
"""Seconds to wait after a 429 that names no time."""

_NEVER_WRITTEN = frozenset(
    {
        "httpx.ConnectError",
        "httpx.ConnectTimeout",
        "httpx.PoolTimeout",
        "httpx.UnsupportedProtocol",
        "aiohttp.client_exceptions.ClientConnectorError",
        "aiohttp.client_exceptions.ConnectionTimeoutError",
        "requests.exceptions.ConnectTimeout",
        "urllib3.exceptions.NewConnectionError",
        "urllib3.exceptions.ConnectTimeoutError",
        "socket.gaierror",
        "ssl.SSLCertVerificationError",
        "builtins.ConnectionRefusedError",
    }
)
_MAYBE_WRITTEN = frozenset(
    {
        "httpx.TransportError",
        "aiohttp.client_exceptions.ClientError",
        "requests.exceptions.RequestException",
        "urllib3.exceptions.HTTPError",
        "http.client.HTTPException",
        "builtins.OSError",
    }
)


class SendError(OnRecordError):
    """A send didn't succeed. `definite`: nothing of it was taken."""

    stored = "yes"
    definite: bool = True


class NotSent(SendError):
    """Nothing was written to the socket (refused, DNS, TLS)."""

    may_retry = True


class SendRefused(SendError):
    """The platform refused these bytes. Facts: markup (could plain text help? True unless said)."""

    markup: bool = True


class RateLimited(SendError):
    """The platform takes it later. Facts: retry_after (seconds)."""

    may_retry = True
    retry_after: float = DEFAULT_RETRY_AFTER


class SendInDoubt(SendError):
    """It may have been taken (5xx, timeout, reset after the first byte)."""

    definite = False


def from_status(status: int, reason: str = "", retry_after: float | None = None) -> SendError:
    """Return the error that an HTTP status (300 and above) stands for.

    `retry_after`: seconds, as the platform's answer to a 429 says.
    """
    said = f"the platform answered {status}{': ' + reason if reason else ''}"
    if status == TOO_MANY_REQUESTS:
        wait = DEFAULT_RETRY_AFTER if retry_after is None else retry_after
        return RateLimited(said, retry_after=wait)
    if status < 500 and status != REQUEST_TIMEOUT:
        return SendRefused(said, markup=status in (400, 422))
    return SendInDoubt(said)


def classify(error: Exception) -> SendError | None:
    """Return what an adapter's exception says about the send; None for one that isn't about sending.

    Error types of clients that aren't installed are known by name, so that nothing is imported.
    """
    if isinstance(error, SendError):
        return error
    names = {f"{cls.__module__}.{cls.__qualname__}" for cls in type(error).__mro__}
    # Clients re-export their errors from private modules: httpx._exceptions.ConnectError.
    names |= {f"{cls.__module__.split('.')[0]}.{cls.__qualname__}" for cls in type(error).__mro__}
    said = f"{type(error).__name__}: {error}"
    cause = error.__cause__ or error.__context__ or getattr(error, "reason", None)
    if names & _NEVER_WRITTEN or (
        "urllib.error.URLError" in names and isinstance(cause, OSError) and _never_written(cause)
    ):
        return NotSent(said)
    if names & _MAYBE_WRITTEN:
        return SendInDoubt(said)
    return None


def _never_written(cause: OSError) -> bool:
    return isinstance(classify(cause), NotSent)


class AlreadyAttempted(AppendRefused):
    """The very part was attempted before; nothing was sent. Ask recovery what is known of it."""

    stored = "yes"


class Outcome(msgspec.Struct, frozen=True):
    """How a delivery stands.

    `state`: delivered; empty (nothing but blank: nothing was sent); refused (by the platform);
    not_sent (nothing reached it); waiting (not before `not_before`); in_doubt (may have been taken);
    stopped (the sender was, between two parts); open (its stream isn't finished). `text` is what was
    taken, `rest` what wasn't sent. `error` is the last failure.
    """

    delivery: str
    state: State
    text: str = ""
    rest: str = ""
    platform_messages: tuple[str, ...] = ()
    attempt: int = 1
    not_before: datetime | None = None
    error: Exception | None = None

    @property
    def delivered(self) -> bool:
        """Tell whether the platform took all of it."""
        return self.state == "delivered"

    def raise_unless_delivered(self) -> None:
        """Raise what stood in the way, unless there was nothing to send or all was taken."""
        if self.state not in ("delivered", "empty"):
            raise self.error or SendError(f"delivery {self.delivery!r} is {self.state}")
