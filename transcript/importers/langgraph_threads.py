"""One thread's checkpoints, followed from one to the next: what its list of messages gained and lost.

Each checkpoint holds the whole list (or, of a DeltaChannel, what the writes since an older one make of
it). What is appended becomes rows. Where the front was dropped, it was compacted. Where anything else is
gone or changed (an edit, a removal, a run that began anew from an older checkpoint), the turn of the first
difference is taken back, and what the list holds from there on is said again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from onrecord.transcript.events import TranscriptCompacted
from onrecord.transcript.importers import codes
from onrecord.transcript.importers import langgraph_values as values
from onrecord.transcript.importers.contents import text_of
from onrecord.transcript.importers.langgraph_messages import kind_of, tell
from onrecord.transcript.importers.langgraph_tables import VALUE_LIMIT, Checkpoint, Stored, Tables
from onrecord.transcript.importers.langgraph_values import Lost, Message, Packed, State, Unreadable
from onrecord.transcript.importers.rows import SourceRows
from onrecord.transcript.importers.source import Entry
from onrecord.transcript.importers.times import microseconds

ALL = "__remove_all__"
ROOT = "__root__"
DROPPED = "[{} earlier messages were removed from the state]"


class ThreadRows(SourceRows):
    """Rows of a list that may begin anew with anything."""

    def rewound(self, to_turn: str, at: int | None, place: str) -> None:
        """That turn and what came after it were taken back; what comes next begins a turn."""
        super().rewound(to_turn, at, place)
        self.turn = ""


class Held(NamedTuple):
    """A message of the list as it is stored, and the turn that it was told in."""

    value: Packed
    id: str
    kind: str
    turn: str


class Thread:
    """Follows the checkpoints of one thread, or of one graph within it."""

    def __init__(self, tables: Tables, thread: bytes, namespace: str, rows: ThreadRows) -> None:
        self._tables = tables
        self._of = (thread, namespace)
        self._rows = rows
        self._held: list[Held] = []
        self._keys: set[str] = set()
        self._current: dict[str, str] = {}  # id → key of the messages that are held
        self._channel: str | None = None
        self._whole: Packed | None = None
        self._list_of_whole: list[Packed] = []
        self._first = ""
        self._previous: Checkpoint | None = None
        self._source = ""
        self._at: int | None = None
        self._place = ""

    def entries(self, left: bool) -> Iterator[Entry]:
        """Iterate over the entries. `left`: the program ended in mid-work."""
        for checkpoint in self._tables.checkpoints(*self._of):
            self._first = self._first or checkpoint.id
            self._take(checkpoint)
            yield from self._rows.take()
        self._end(left)
        yield from self._rows.take()

    # --- checkpoints -----------------------------------------------------------------------------

    def _take(self, checkpoint: Checkpoint) -> None:
        before, self._previous = self._previous, checkpoint
        self._source = _source(checkpoint.metadata)
        place = f"checkpoints {checkpoint.id}"
        parent = checkpoint.parent
        if parent and (before is None or parent != before.id) and not self._has(parent):
            self._rows.fault(
                codes.GAP, place, f"its parent {parent} is gone, with what led from it to here"
            )
        try:
            state = values.state(_packed(checkpoint.value))
            self._channel = self._channel or _channel_of(state)
            now = None if self._channel is None else self._list(checkpoint, state)
        except Unreadable as wrong:
            self._rows.fault(_code(wrong), place, str(wrong))
            return
        if now is None:
            return
        self._at = microseconds(state.at)
        if before is not None and not (self._source == "loop" and parent == before.id):
            self._tell_unfinished(before, now if parent == before.id else [])
        self._become(now, checkpoint.id, state)
        for write in self._tables.writes(*self._of, checkpoint.id, "__error__"):
            self._rows.broken(_shown(write.value), self._at, write.place)

    def _has(self, id: str) -> bool:
        return self._tables.has(*self._of, id)

    def _list(self, checkpoint: Checkpoint, state: State) -> list[Packed]:
        """Return the messages of a checkpoint. Raise Unreadable."""
        assert self._channel is not None
        whole = state.channels.get(self._channel)
        if whole is not None:
            if whole != self._whole:  # most checkpoints change something else
                self._whole, self._list_of_whole = whole, _opened(whole, self._channel)
            return self._list_of_whole
        return self._rebuilt(checkpoint) if self._channel in state.written else []

    def _rebuilt(self, checkpoint: Checkpoint) -> list[Packed]:
        """Return what the writes since the last whole list make of it. Raise Unreadable."""
        assert self._channel is not None
        chain: list[str] = []
        base: list[Packed] = []
        id = checkpoint.parent
        while id and id not in chain:
            chain.append(id)
            found = self._tables.checkpoint(*self._of, id)
            if found is None:
                break
            state = values.state(_packed(found.value))
            if (whole := state.channels.get(self._channel)) is not None:
                base = _opened(whole, self._channel)
                break
            id = found.parent
        for id in reversed(chain):
            for write in self._tables.writes(*self._of, id, self._channel):
                base = _reduced(base, _packed(write.value))
        return base

    def _end(self, left: bool) -> None:
        """Say what the last checkpoint leaves open."""
        last = self._previous
        if last is None:
            return
        if self._channel is None:
            if self._of[1] == "" and self._source != "input":
                self._rows.fault(
                    codes.UNKNOWN, f"checkpoints {self._first}", "the thread's state holds no messages"
                )  # fmt: skip
            return
        unfinished = self._tell_unfinished(last, [])
        waits = next(self._tables.writes(*self._of, last.id, "__interrupt__"), None) is not None
        if left and not unfinished and not waits:
            if self._source == "input":
                self._rows.fault(
                    codes.TORN, f"checkpoints {last.id}", "an input that was never taken in"
                )  # fmt: skip
            elif self._held and not self._is_answered():
                self._rows.fault(
                    codes.TORN, self._place,
                    "the last message has no answer: the program ended while it worked on one",
                )  # fmt: skip
        self._rows.finish(self._at)

    def _is_answered(self) -> bool:
        """Tell whether the last message is an answer that asks for no tool."""
        last = self._held[-1]
        return last.kind == "ai" and not values.message(last.value).fields.get("tool_calls")

    def _tell_unfinished(self, checkpoint: Checkpoint, now: list[Packed]) -> bool:
        """Say which messages were written after a checkpoint and never came into the list."""
        assert self._channel is not None
        told = False
        for write in self._tables.writes(*self._of, checkpoint.id, self._channel):
            try:
                written = _messages(_packed(write.value))
            except Unreadable as wrong:
                self._rows.fault(_code(wrong), write.place, str(wrong))
                continue
            for found in written:
                if kind_of(found) != "remove" and not self._is_held(found, now):
                    length = len(text_of(found.fields.get("content")))
                    self._rows.fault(
                        codes.TORN, write.place,
                        f"a message ({kind_of(found)}) of {length} characters was written in a step "
                        "that never ended: it is in no checkpoint",
                    )  # fmt: skip
                    told = True
        return told

    def _is_held(self, found: Message, now: list[Packed]) -> bool:
        """Tell whether a message is in the list, or in the next one: there it may have got its id."""
        if found.id in self._current:
            return True
        known = {held.value for held in self._held}
        for value in now:
            if value not in known and values.is_message(value):
                other = values.message(value)
                same = other.kind == found.kind and other.fields.get("content") == found.fields.get(
                    "content"
                )
                if same or (found.id and other.id == found.id):
                    return True
        return False

    # --- the list --------------------------------------------------------------------------------

    def _become(self, now: list[Packed], checkpoint: str, state: State) -> None:
        """Make the list what it is in the next checkpoint, and tell the difference."""
        kept = 0
        for held, value in zip(self._held, now, strict=False):
            if held.value != value:
                break
            kept += 1
        if kept < len(self._held):
            if not self._compact(now, kept, checkpoint, state):
                self._take_back(kept, checkpoint)
            kept = len(self._held)
        for index in range(kept, len(now)):
            self._tell(now[index], checkpoint, index)

    def _compact(self, now: list[Packed], kept: int, checkpoint: str, state: State) -> bool:
        """If only the front of the list was dropped, say so; what stands there instead is its summary."""
        if any(held.kind != "system" for held in self._held[:kept]):
            return False
        places = {held.value: index for index, held in enumerate(self._held)}
        first = kept
        while first < len(now) and now[first] not in places and _is_system(now[first]):
            first += 1
        cut = places.get(now[first], -1) if first < len(now) else -1
        rest = self._held[cut:]
        if cut < kept or now[first : first + len(rest)] != [each.value for each in rest]:
            return False
        dropped, self._held = self._held[kept:cut], self._held[:kept]
        for index in range(kept, first):
            self._tell(now[index], checkpoint, index)
        self._hold(self._held + rest)
        staying = {held.turn for held in rest}
        gone = [held.turn for held in dropped if held.turn and held.turn not in staying]
        if gone:
            said = (text_of(values.message(each).fields.get("content")) for each in now[kept:first])
            told = "\n\n".join(said) or _summary(state) or DROPPED.format(len(dropped))
            event = TranscriptCompacted(through_turn=gone[-1], summary=told)
            self._rows.add(event, self._at, f"checkpoints {checkpoint}")
        return True

    def _take_back(self, kept: int, checkpoint: str) -> None:
        """Take the turn of the first message that is gone back, with all that came after it."""
        turn = next((held.turn for held in self._held[kept:] if held.turn), "")
        if turn:
            start = next(i for i, held in enumerate(self._held) if held.turn == turn)
            kept = min(kept, start)
            self._rows.rewound(turn, self._at, f"checkpoints {checkpoint}")
        self._hold(self._held[:kept])

    def _hold(self, held: list[Held]) -> None:
        """Go on with these messages alone."""
        self._held = held
        self._current = {each.id: self._current[each.id] for each in held if each.id}

    def _tell(self, value: Packed, checkpoint: str, index: int) -> None:
        """Tell the rows a message that is new in the list."""
        self._place = f"checkpoints {checkpoint} {self._channel}[{index}]"
        try:
            found = values.message(value)
        except Unreadable as wrong:
            self._rows.fault(_code(wrong), self._place, str(wrong))
            self._held.append(Held(value, "", "", self._rows.turn))
            return
        key = self._key(found.id, checkpoint, index)
        tell(self._rows, found, key, self._at, self._place)
        self._keys.add(key)
        if found.id:
            self._current.setdefault(found.id, key)
        self._held.append(Held(value, found.id, kind_of(found), self._rows.turn))

    def _key(self, id: str, checkpoint: str, index: int) -> str:
        """Name a message: by its id, or, if that was another's or it was taken back, by where it stands."""
        if not id:
            return f"{checkpoint}#{index}"
        if id in self._current:  # twice in one list
            return self._current[id]
        return f"{id}@{checkpoint}" if id in self._keys else id


def _channel_of(state: State) -> str | None:
    """Return the channel that holds messages; `messages` is one while it is empty, too."""
    if "messages" in state.written and "messages" not in state.channels:
        return "messages"
    others = sorted(state.channels.keys() - {"messages", ROOT, "__start__"})
    lists = {
        name: found
        for name in ("messages", ROOT, *others)
        if name in state.channels and (found := values.elements(state.channels[name])) is not None
    }
    for name, found in lists.items():
        if found and (name == "messages" or values.is_message(found[0])):
            return name
    return "messages" if "messages" in lists else None


def _opened(value: Packed, channel: str) -> list[Packed]:
    """Return what a channel's list holds. Raise Unreadable."""
    found = values.elements(value)
    if found is None:
        raise Unreadable(f"the channel {channel} holds no list")
    return found


def _messages(value: Packed) -> list[Message]:
    """Return the messages of a write. Raise Unreadable."""
    inner = values.overwrite(value)
    found = values.elements(value if inner is None else inner)
    return [values.message(each) for each in ([value] if found is None else found)]


def _reduced(base: list[Packed], written: Packed) -> list[Packed]:
    """Return a list after a write to it, as LangGraph's own reducer for deltas does it."""
    if (inner := values.overwrite(written)) is not None:
        return values.elements(inner) or []
    result = list(base)
    places = {id: place for place, each in enumerate(result) if (id := _id(each))}
    gone: set[int] = set()
    for each in values.elements(written) or [written]:
        id, removes = _id(each), values.is_removal(each)
        if removes and id == ALL:
            result, places, gone = [], {}, set()
        elif removes:
            gone.update({places.pop(id)} if id in places else ())
        elif id in places:
            result[places[id]] = each
        else:
            if id:
                places[id] = len(result)
            result.append(each)
    return [each for place, each in enumerate(result) if place not in gone]


def _id(value: Packed) -> str:
    return values.message(value).id if values.is_message(value) or values.is_removal(value) else ""


def _is_system(value: Packed) -> bool:
    return values.is_message(value) and kind_of(values.message(value)) == "system"


def _packed(stored: Stored) -> Packed:
    """Return a stored value. Raise Unreadable, Lost."""
    if stored.data is None and stored.size:
        raise Unreadable(f"it has {stored.size} bytes, over {VALUE_LIMIT}, and was not read")
    return values.packed(stored.type, stored.data or b"")


def _shown(stored: Stored) -> str:
    """Return a value for people."""
    try:
        found = values.plain(_packed(stored))
    except Unreadable as wrong:
        return str(wrong)
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str)


def _summary(state: State) -> str:
    """Return the text of a channel that programs keep a summary in."""
    value = state.channels.get("summary")
    found = values.plain(value) if value is not None else ""
    return found if isinstance(found, str) else ""


def _source(metadata: bytes | None) -> str:
    """Return what made a checkpoint: input, loop, update or fork."""
    try:
        found: Any = json.loads(metadata or b"{}")
    except (ValueError, RecursionError):
        return ""
    return str(found.get("source", "")) if isinstance(found, dict) else ""


def _code(wrong: Unreadable) -> str:
    return codes.LOST if isinstance(wrong, Lost) else codes.UNREADABLE
