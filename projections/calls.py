"""Which result answers which call of a tool [7]."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from onrecord.transcript.events import AssistantMessageProduced, ToolResultReceived

Results = dict[str, tuple[int, ToolResultReceived]]
"""By call: the result that answers it, and its version."""


class Calls(msgspec.Struct):
    """The calls of one session and their results, both by call and turn, in log order."""

    asked: dict[str, dict[str, list[tuple[int, str]]]] = msgspec.field(default_factory=dict)
    results: dict[str, dict[str, list[tuple[int, ToolResultReceived]]]] = msgspec.field(
        default_factory=dict
    )
    _latest: dict[str, str] = msgspec.field(default_factory=dict)

    def ask(self, event: AssistantMessageProduced, version: int, turn: str) -> Iterator[str]:
        """Take a message's calls in; return the turns that lose strays to them."""
        for call in event.tool_calls:
            if call.id in self._latest:
                yield self._latest[call.id]  # strays go to the last call of their id
            self.asked.setdefault(call.id, {}).setdefault(turn, []).append((version, event.message))
            self._latest[call.id] = turn

    def answer(self, event: ToolResultReceived, version: int, turn: str) -> str | None:
        """Take a result in; return the turn where it stands, None while it has no call."""
        call = event.tool_call
        self.results.setdefault(call, {}).setdefault(turn, []).append((version, event))
        return turn if self.is_of(call, turn) else self._latest.get(call)

    def is_of(self, call: str, turn: str) -> bool:
        """Tell whether a call was made in a turn."""
        return turn in self.asked.get(call, ())

    def found(self, event: AssistantMessageProduced, turn: str) -> Results:
        """Match a message's calls with results: those of its turn first, then strays."""
        found: Results = {}
        for call in event.tool_calls:
            results, callers = self.results.get(call.id, {}), self.asked[call.id]
            asked = callers[turn]
            for version, result in results.get(turn, ()):
                before = [of for at, of in asked if at < version]
                if (before[-1] if before else asked[0][1]) == event.message:
                    found.setdefault(call.id, (version, result))
            if self._latest[call.id] == turn and asked[-1][1] == event.message:
                strays = [r for of, known in results.items() if of not in callers for r in known]
                if strays and call.id not in found:
                    found[call.id] = min(strays, key=lambda stray: stray[0])
        return found

    def orphans(self) -> list[tuple[int, str, str]]:
        """Return version, turn and call of the results whose call isn't in the session."""
        return [
            (version, turn, call)
            for call, results in self.results.items()
            if call not in self.asked
            for turn, known in results.items()
            for version, _ in known
        ]
