"""Kill a gateway at every failpoint of every kind of turn: nothing the user saw is lost or doubled."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kill_cases import KILLED_IN_RECOVERY, at_failpoints, schemas
from kill_harness import RULES, STYLES, Case, Stage, Verdict, run_case, stage
from postgres_server import Server

from onrecord.transcript import failpoints

AT_ONCE = 2
FAULT_LENGTH = 2_000
TURN_KINDS = ("streamed", "whole", "split", "edited", "tool", "broken", "looked up")
EVERY = {"sqlite": 1, "postgresql": 8}
"""All kills are tried on a file; one in so many on a server, and all of them by `make kill`."""

pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="follows its children by pidfd and /proc"),
]

verdicts: list[Verdict] = []


@pytest.fixture(scope="module", params=EVERY)
def database(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def here(database: str, request: pytest.FixtureRequest) -> Iterator[Stage]:
    if database == "sqlite":
        with stage() as opened:
            yield opened
        return
    server: Server = request.getfixturevalue("postgres_server")
    with schemas(server) as another, stage(another) as opened:
        yield opened


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
def test_a_turn_survives_a_kill_at_every_failpoint(here: Stage, database: str, style: str) -> None:
    cases = at_failpoints(here, style)

    done = _run_all(here, cases[TURN_KINDS.index(style) % EVERY[database] :: EVERY[database]])

    _hold(done)


def test_a_second_kill_in_the_sending_of_recovery_is_survived_too(
    here: Stage, database: str
) -> None:
    done = _run_all(here, list(KILLED_IN_RECOVERY[:: EVERY[database]]))

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
