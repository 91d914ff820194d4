"""What a chat gateway calls: messages in, deliveries out, recovery after a restart.

The names here are the API; they are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onrecord.gateway.async_delivery import AsyncDelivery, AsyncOutbox
    from onrecord.gateway.async_recovery import AsyncRecovery
    from onrecord.gateway.delivery import Delivery, Outbox
    from onrecord.gateway.holding import AsyncHold, Hold
    from onrecord.gateway.inbox import AsyncInbox, Inbox, Receipt
    from onrecord.gateway.outcomes import (
        AlreadyAttempted,
        NotSent,
        Outcome,
        RateLimited,
        SendError,
        SendInDoubt,
        SendRefused,
        classify,
        from_status,
    )
    from onrecord.gateway.outgoing import Stopped
    from onrecord.gateway.platform import (
        Abilities,
        AsyncPlatform,
        Found,
        Platform,
        Request,
        utf16_units,
    )
    from onrecord.gateway.recovery import Begin, Close, Plan, Recovery, Send, Settle

__all__ = [
    "Abilities",
    "AlreadyAttempted",
    "AsyncDelivery",
    "AsyncHold",
    "AsyncInbox",
    "AsyncOutbox",
    "AsyncPlatform",
    "AsyncRecovery",
    "Begin",
    "Close",
    "Delivery",
    "Found",
    "Hold",
    "Inbox",
    "NotSent",
    "Outbox",
    "Outcome",
    "Plan",
    "Platform",
    "RateLimited",
    "Receipt",
    "Recovery",
    "Request",
    "Send",
    "SendError",
    "SendInDoubt",
    "SendRefused",
    "Settle",
    "Stopped",
    "classify",
    "from_status",
    "utf16_units",
]

_HOME = {
    "Abilities": "platform",
    "AlreadyAttempted": "outcomes",
    "AsyncDelivery": "async_delivery",
    "AsyncHold": "holding",
    "AsyncInbox": "inbox",
    "AsyncOutbox": "async_delivery",
    "AsyncPlatform": "platform",
    "AsyncRecovery": "async_recovery",
    "Begin": "recovery",
    "Close": "recovery",
    "Delivery": "delivery",
    "Found": "platform",
    "Hold": "holding",
    "Inbox": "inbox",
    "NotSent": "outcomes",
    "Outbox": "delivery",
    "Outcome": "outcomes",
    "Plan": "recovery",
    "Platform": "platform",
    "RateLimited": "outcomes",
    "Receipt": "inbox",
    "Recovery": "recovery",
    "Request": "platform",
    "Send": "recovery",
    "SendError": "outcomes",
    "SendInDoubt": "outcomes",
    "SendRefused": "outcomes",
    "Settle": "recovery",
    "Stopped": "outgoing",
    "classify": "outcomes",
    "from_status": "outcomes",
    "utf16_units": "platform",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
