"""The demo: a conversation that survives a broken stream and a kill, beside a store that doesn't."""

from __future__ import annotations

from onrecord.gateway.demo.command import demo

__all__ = ["demo"]
