"""Kill a gateway at every failpoint of every kind of turn: nothing the user saw is lost or doubled."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kill_harness import RULES, STYLES, Case, Run, Stage, Verdict, run_case, stage

from onrecord.transcript import failpoints

AT_ONCE = 2
FAULT_LENGTH = 2_000
TURN_KINDS = ("streamed", "whole", "split", "edited", "tool", "broken", "looked up")
KILLED_IN_RECOVERY = (
    Case("streamed", ("answer-durable", "recovery-sending")),
    Case("whole", ("answer-durable", "recovery-sending")),
    Case("whole", ("markup-refused", "recovery-sending")),
    Case("split", ("between-parts", "recovery-sending")),
    Case("split", ("retry-after", "recovery-sending")),
    Case("split", ("answer-durable", "recovery-sending:2")),
    Case("edited", ("attempted:3", "recovery-sending")),
    Case("tool", ("answer-durable", "recovery-sending")),
)

pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="follows its children by pidfd and /proc"),
]

verdicts: list[Verdict] = []


@pytest.fixture(scope="module")
def here() -> Iterator[Stage]:
    with stage() as opened:
        yield opened


def _came_by(here: Stage, style: str) -> dict[str, int]:
    """Return how often an undisturbed turn comes by each failpoint."""
    run = Run(here, Case(style, ()))
    run.say(f"Tell me, {style}")
    counted = run.folder / "count"
    assert run.begin(count=str(counted)).wait() == 0, run.errors()
    came: dict[str, int] = json.loads(counted.read_text(encoding="utf-8"))
    return came


def _run_all(here: Stage, cases: list[Case]) -> list[Verdict]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda case: run_case(here, case), cases))
    verdicts.extend(done)
    return done


def _hold(done: list[Verdict]) -> None:
    """Fail with all that went wrong, said in full."""
    faults = [
        f"{verdict.case}: lost {verdict.lost}, duplicated {verdict.duplicated}, {verdict.faults}"
        for verdict in done
        if verdict.faults or verdict.lost or verdict.duplicated
    ]
    if faults:
        pytest.fail("\n\n".join(fault[:FAULT_LENGTH] for fault in faults), pytrace=False)


@pytest.mark.parametrize("style", TURN_KINDS)
def test_a_turn_survives_a_kill_at_every_failpoint(here: Stage, style: str) -> None:
    came_by = _came_by(here, style)
    cases = [
        Case(style, (f"{name}:{number + 1}",))
        for name, times in came_by.items()
        for number in range(times)
        # A stopped sender wakes up and sends what a lookup didn't find: no lease can hold a socket.
        if (style, name) != ("looked up", "stopped")
    ]

    done = _run_all(here, cases)

    _hold(done)


def test_a_second_kill_in_the_sending_of_recovery_is_survived_too(here: Stage) -> None:
    done = _run_all(here, list(KILLED_IN_RECOVERY))

    _hold(done)


def test_every_kill_point_was_tried_and_a_store_at_the_end_of_the_turn_loses(
    capfd: pytest.CaptureFixture[str],
) -> None:
    if not verdicts:
        pytest.skip("sums up the tests above, which weren't run")
    tried = {kill.partition(":")[0] for verdict in verdicts for kill in verdict.case.kills}
    killed = sum(verdict.killed for verdict in verdicts)
    lost = sum(verdict.lost for verdict in verdicts)
    duplicated = sum(verdict.duplicated for verdict in verdicts)
    losing = [verdict for verdict in verdicts if verdict.ledger_lost]

    assert tried == set(failpoints.ROWS)
    assert set(STYLES) == set(TURN_KINDS) >= set(RULES)
    # The harness isn't blind: in the same runs a store that writes at the end of the turn loses.
    assert len(losing) > len(verdicts) / 4
    with capfd.disabled():
        print(f"\nkill points: {killed}, lost: {lost}, duplicated: {duplicated}", file=sys.stderr)
        print(
            f"saved at the end of the turn, the same runs lost "
            f"{sum(verdict.ledger_lost for verdict in verdicts)} characters in {len(losing)}",
            file=sys.stderr,
        )


def test_failpoints_are_the_rows_of_the_table() -> None:
    table = Path(__file__).with_name("kill-points.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]

    assert set(rows[1:]) == set(failpoints.ROWS.values())


def test_an_unset_failpoint_does_nothing() -> None:
    assert failpoints.hit is failpoints._nothing
    assert failpoints.hit_commit is failpoints._nothing_commit


@pytest.mark.parametrize("wrong", ["nowhere", "attempted:0", "attempted:x"])
def test_a_failpoint_that_there_is_not_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="ONRECORD_FAILPOINT"):
        failpoints.arm(wrong)
