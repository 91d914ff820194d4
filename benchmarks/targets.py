"""The targets, and what a run says about each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from results import NotMeasured, Results

EACH, TAIL, LOG, BOUNDED = (f"onrecord_log:{name}" for name in ("each", "tail", "log", "bounded"))
FULL, RETRYING = "floor:full", "floor:full-jit"
GATEWAY = "onrecord_gateway:edits"
PG_EACH, PG_LOG = "onrecord_postgresql:each", "onrecord_postgresql:log"
PG_BARE = "floor_postgresql:full"
KILOBYTE = 1_000


@dataclass(frozen=True)
class Verdict:
    """`figure`: what was measured, with its unit; `ratio`: to what the target names, if to anything.

    `met`: None where there is no target.
    """

    figure: str
    ratio: float | None
    met: bool | None


@dataclass(frozen=True)
class Target:
    """One line of the table."""

    what: str
    target: str
    judge: Callable[[Results], Verdict]

    def verdict(self, results: Results) -> Verdict | None:
        """Judge a run; None where it wasn't measured. What has no target is neither met nor missed."""
        try:
            found = self.judge(results)
        except NotMeasured:
            return None
        return found if self.target else replace(found, met=None)


def _rate(
    scenario: str, least: float, ours: str = EACH, to: str = FULL
) -> Callable[[Results], Verdict]:
    """Judge a rate by its ratio to another's."""

    def judge(results: Results) -> Verdict:
        rate, other = (results.median(scenario, name, "turns_per_second") for name in (ours, to))
        ratio = results.ratio(scenario, ours, "turns_per_second", to)
        return Verdict(f"{rate:,.0f} turns/s ({other:,.0f})", ratio, ratio >= least)

    return judge


def _at_most(
    scenario: str, key: str, most: float, unit: str, *, per: float = 1, worst: bool = False,
    ours: str = EACH,
) -> Callable[[Results], Verdict]:  # fmt: skip
    def judge(results: Results) -> Verdict:
        get = results.worst if worst else results.median
        value = get(scenario, ours, key) / per
        return Verdict(f"{value:,.2f} {unit}", None, value <= most)

    return judge


def _at_least(scenario: str, key: str, least: float, unit: str) -> Callable[[Results], Verdict]:
    def judge(results: Results) -> Verdict:
        value = results.median(scenario, EACH, key)
        return Verdict(f"{value:,.0f} {unit}", None, value >= least)

    return judge


def _none_of(scenario: str, *keys: str, unit: str = "") -> Callable[[Results], Verdict]:
    """Judge that nothing of a kind happened in any round."""

    def judge(results: Results) -> Verdict:
        counts = [int(results.worst(scenario, EACH, key)) for key in keys]
        return Verdict(", ".join(map(str, counts)) + unit, None, not any(counts))

    return judge


def _grows(
    scenario: str, key: str, short: int, most: float, ours: str = EACH
) -> Callable[[Results], Verdict]:
    """Judge what a thing costs at 50,000 messages by what it costs in a short session."""

    def judge(results: Results) -> Verdict:
        few, many = (results.median(scenario, ours, f"{key}@{n}") for n in (short, 50_000))
        ratio = results.ratio(scenario, ours, f"{key}@50000", ours, f"{key}@{short}")
        return Verdict(f"{few:,.2f} → {many:,.2f} ms", ratio, ratio <= most)

    return judge


def _cold(results: Results) -> Verdict:
    ours, floor = (results.median("W2", name, "open_and_load_ms") for name in (EACH, FULL))
    ratio = results.ratio("W2", EACH, "open_and_load_ms")
    return Verdict(f"{ours:,.0f} ms ({floor:,.0f})", ratio, ratio <= 2)


def _colder_than(name: str) -> Callable[[Results], Verdict]:
    def judge(results: Results) -> Verdict:
        ours, other = (results.median("W2", who, "open_and_load_ms") for who in (EACH, name))
        ratio = results.ratio("W2", EACH, "open_and_load_ms", name)
        return Verdict(f"{ours:,.0f} ms ({other:,.0f})", ratio, ratio < 1)

    return judge


def _killed(results: Results) -> Verdict:
    lost, sent = (int(results.worst("W6", EACH, key)) for key in ("lost", "sent"))
    return Verdict(f"{lost} of {sent} lost", None, not lost)


def _importing(results: Results) -> Verdict:
    ours, libraries = (
        results.median("importing", EACH, key) for key in ("ours_ms", "libraries_ms")
    )
    ratio = results.median("importing", EACH, "times_libraries")
    return Verdict(f"{ours:,.0f} ms ({libraries:,.0f})", ratio, ratio <= 1.3)


def _optional(results: Results) -> Verdict:
    loaded = results.values("importing", EACH, "optional_loaded")[-1]
    return Verdict(", ".join(loaded) or "none", None, not loaded)


def _memory(scenario: str, *keys: str) -> Callable[[Results], Verdict]:
    def judge(results: Results) -> Verdict:
        shown = " + ".join(f"{results.worst(scenario, EACH, key):,.0f}" for key in keys)
        return Verdict(f"{shown} MB", None, None)

    return judge


def _reply(chunk: int) -> Callable[[Results], Verdict]:
    def judge(results: Results) -> Verdict:
        ours, floor = (results.median("disk", who, f"bytes@{chunk}") for who in (GATEWAY, FULL))
        ratio = results.ratio("disk", GATEWAY, f"bytes@{chunk}")
        return Verdict(f"{ours / KILOBYTE:,.0f} kB ({floor / KILOBYTE:,.0f})", ratio, None)

    return judge


TARGETS = (
    Target("W1: a durable commit an event", "≥ 0.7 × floor", _rate("W1", 0.7)),
    Target("W1: processor", "≤ 0.6 ms a turn", _at_most("W1", "cpu_ms", 0.6, "ms")),
    Target("W1: disk", "≤ 5 kB a turn", _at_most("W1", "bytes", 5, "kB", per=KILOBYTE)),
    Target("W1: a turn's tail in one append", "≥ 1.3 × floor", _rate("W1", 1.3, TAIL)),
    Target("W2: 10,000 messages, cold", "≤ 2 × floor", _cold),
    Target("W2: beside hermes", "faster", _colder_than("hermes:default")),
    Target("W2: beside JSON lines", "faster", _colder_than("jsonlines:fsync")),
    Target("Last 50 of 50,000 messages", "≤ 3 ms", _at_most("tail", "tail_ms@50000", 3, "ms")),
    Target("Last 50, of 1,000 → 50,000", "independent", _grows("tail", "tail_ms", 1_000, 1.2)),
    Target("W3: 1,000 sessions", "≥ 0.7 × floor", _rate("W3", 0.7)),
    Target("W3: resident memory", "bounded", _memory("W3", "memory_mb")),
    Target("W4a: 4 processes", "≥ 0.8 × floor retrying", _rate("W4a", 0.8, EACH, RETRYING)),
    Target("W4a: the same, rows read later", "", _rate("W4a", 0.8, LOG, RETRYING)),
    Target(
        "W4a: longest turn", "≤ 300 ms",
        _at_most("W4a", "longest_ms", 300, "ms", worst=True),
    ),
    Target(
        "W4a: errors, lost, duplicated", "0", _none_of("W4a", "errors", "lost", "duplicated")
    ),
    Target(
        "W4b: errors, lost, duplicated, broken", "0",
        _none_of("W4b", "errors", "lost", "duplicated", "broken"),
    ),
    Target(
        "Streaming: 100 sessions × 50/s", "≥ 5,000 chunks/s",
        _at_least("streaming", "chunks_per_second@50", 5_000, "chunks/s"),
    ),
    Target("Streaming: latency p50", "≤ 5 ms", _at_most("streaming", "p50_ms@50", 5, "ms")),
    Target("Streaming: latency p99", "≤ 25 ms", _at_most("streaming", "p99_ms@50", 25, "ms")),
    Target(
        "Streaming: loop blocked, longest", "≤ 10 ms",
        _at_most("streaming", "blocked_ms@50", 10, "ms", worst=True),
    ),
    Target(
        "Streaming without pauses", "",
        _at_least("streaming", "chunks_per_second@0", 0, "chunks/s"),
    ),
    Target("W5: append, 100 → 50,000", "≤ 1.2 ×", _grows("W5", "append_ms", 100, 1.2)),
    Target(
        "W5: next call, bounded view", "independent",
        _grows("W5", "next_call_ms", 100, 1.2, BOUNDED),
    ),
    Target("W6: chunks that were sent", "0 lost", _killed),
    Target(
        "Replay of 1,000,000 events", "≥ 100,000 events/s",
        _at_least("replay", "events_per_second", 100_000, "events/s"),
    ),
    Target(
        "Replay: memory, ours + its child", "bounded",
        _memory("replay", "memory_mb", "largest_child_mb"),
    ),
    Target(
        "Audit of 1,000,000 events", "≥ 200,000 events/s",
        _at_least("audit", "cold_per_second@1000", 200_000, "events/s"),
    ),
    Target(
        "Audit: the same, stored", "≥ 200,000 events/s",
        _at_least("audit", "stored_per_second@1000", 200_000, "events/s"),
    ),
    Target("Audit: in one session", "", _at_least("audit", "cold_per_second@1", 0, "events/s")),
    Target(
        "Audit: memory, ours + its child", "bounded",
        _memory("audit", "cold_memory_mb@1000", "cold_child_mb@1000"),
    ),
    Target(
        "Audit: memory, one session", "bounded",
        _memory("audit", "cold_memory_mb@1", "stored_memory_mb@1"),
    ),
    Target("Importing, beside our libraries", "≤ 1.3 ×", _importing),
    Target("Importing: optional packages", "none loaded", _optional),
    Target("PostgreSQL: 4 processes", "≥ 0.5 × bare", _rate("postgresql", 0.5, PG_EACH, PG_BARE)),
    Target("PostgreSQL: the same, rows read later", "", _rate("postgresql", 0.5, PG_LOG, PG_BARE)),
    Target("A turn through agent and gateway", "", _rate("gateway", 0, GATEWAY)),
    Target("A reply of 4,000 in 1,000 chunks", "", _reply(4)),
    Target("A reply of 4,000 in 40 edits", "", _reply(100)),
)  # fmt: skip
