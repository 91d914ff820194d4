"""The contract that every storage of the log passes. Shipped, for storages written elsewhere.

    class TestMine(SharedLogContract):
        @pytest.fixture(autouse=True)
        def place(self, tmp_path):
            self.url = f"sqlite:///{tmp_path}/log.db"

`LogContract` is for any storage, `SharedLogContract` for one that several processes can open.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from uuid import uuid4

from onrecord.transcript import events as e
from onrecord.transcript.errors import (
    KeyConflict,
    LeaseHeld,
    LeaseLost,
    OffsetMismatch,
    WrongExpectedVersion,
)
from onrecord.transcript.testing_content import refused, said
from onrecord.transcript.testing_shared import SharedContract
from onrecord.transcript.testing_writing import WritingContract


class LogContract(WritingContract):
    """What holds for a log in any storage. `url` names an empty one."""

    # --- order and atomicity ---------------------------------------------------------------------

    def test_versions_have_no_gaps_and_positions_grow(self) -> None:
        with self.open() as log:
            for n in range(5):
                log.append("a", said(f"m{n}"), said(f"n{n}"))
                log.append("b", said(f"m{n}"))

            assert [r.version for r in log.read("a")] == list(range(1, 11))
            assert [r.version for r in log.read("b")] == list(range(1, 6))
            positions = [r.position for r in log.read_all()]
            assert positions == sorted(set(positions))
            assert log.version("a") == 10
            assert log.version("none") == 0
            assert [(s.name, s.version) for s in log.sessions()] == [("a", 10), ("b", 5)]

    def test_a_refused_append_leaves_nothing(self) -> None:
        with self.open() as log:
            log.append("s", e.DeliveryAttempted(delivery="d", text="one"))

            with refused(KeyConflict):
                log.append("s", said("m"), e.DeliveryAttempted(delivery="d", text="other"))
            with refused(OffsetMismatch):
                log.append("t", said("m"), e.DeliveryAttempted(delivery="d", text="x", offset=4))

            assert log.version("s") == 1
            assert [s.name for s in log.sessions()] == ["s"]
            assert log.append("s", said("m"))[0].version == 2

    def test_expected_version_is_held(self) -> None:
        with self.open() as log:
            log.append("s", said("m1"), expected_version=0)
            log.append("s", said("m2"), expected_version=1)

            with refused(WrongExpectedVersion) as caught:
                log.append("s", said("m3"), expected_version=1)
            assert caught[0].facts["actual"] == 2
            # What is there already isn't a change.
            assert log.append("s", said("m1"), expected_version=0)[0].version == 1

    def test_reads_go_on_after_a_place(self) -> None:
        with self.open() as log:
            given = log.append("s", *(said(f"m{n}") for n in range(1200)))

            assert [r.version for r in log.read("s")] == list(range(1, 1201))
            assert [r.version for r in log.read("s", after=1190, limit=4)] == list(
                range(1191, 1195)
            )
            assert list(log.read("s", limit=0)) == []
            after = given[700].position
            assert [r.version for r in log.read_all(after=after)] == list(range(702, 1201))
            assert log.find(given[5].id) == given[5]
            assert log.find(uuid4()) is None

    # --- once, not twice -------------------------------------------------------------------------

    def test_the_same_is_recorded_once(self) -> None:
        with self.open() as log:
            own = e.SessionEnded(reason="done")
            first = log.append("s", said("m"), own)

            again = log.append("s", own, said("m", at=datetime.now(UTC), writer="other"))

            assert [r.position for r in again] == [first[1].position, first[0].position]
            assert log.version("s") == 2

    def test_the_same_within_one_append_is_recorded_once(self) -> None:
        with self.open() as log:
            records = log.append("s", said("m"), said("m"), said("n"))

            assert [r.version for r in records] == [1, 1, 2]

    def test_an_intent_of_other_content_is_refused(self) -> None:
        with self.open() as log:
            attempt = e.DeliveryAttempted(delivery="d", text="one")
            log.append("s", attempt)

            with refused(KeyConflict) as caught:
                log.append("s", e.DeliveryAttempted(delivery="d", text="two"))

            assert caught[0].facts["existing"].text == "one"
            assert caught[0].facts["given"].text == "two"
            assert (caught[0].stored, caught[0].may_send) == ("no", False)

    def test_a_fact_of_other_content_is_kept_beside(self) -> None:
        with self.open() as log:
            first = log.append("s", said("m", "one"))[0]

            records = log.append("s", said("m", "two"), said("m", "two"), said("m", "three"))
            again = log.append("s", said("m", "two"))

            assert [r.version for r in records] == [2, 2, 3]
            assert {r.event.conflicts_with for r in records} == {first.id}
            assert again[0].position == records[0].position

    def test_a_source_is_known_in_every_session(self) -> None:
        with self.open() as log:
            source = e.Source(platform="p", chat="c", message="17")
            first = log.append("old", said("m", source=source))[0]

            again = log.append("new", said("other", source=source))[0]

            assert (again.session, again.position) == ("old", first.position)
            assert log.version("new") == 0

    def test_a_reopened_turn_has_keys_of_its_own(self) -> None:
        with self.open() as log:
            ended = e.TurnFinalized(turn="t")
            log.append("s", said("m", turn="t"), ended)
            assert log.append("s", ended)[0].version == 2

            reopened = log.append("s", said("n", turn="t"), ended)

            assert [r.version for r in reopened] == [3, 4]
            assert log.append("s", ended)[0].version == 4

    # --- deliveries and leases -------------------------------------------------------------------

    def test_parts_follow_on(self) -> None:
        def part(offset: int, text: str, attempt: int = 1) -> e.DeliveryAttempted:
            return e.DeliveryAttempted(delivery="d", offset=offset, text=text, attempt=attempt)

        with self.open() as log:
            log.append("s", part(0, "🙂ab"), part(3, "c"))
            for wrong in (part(5, "x"), part(2, "x"), part(5, "x", 2), part(0, "x", 3)):
                with refused(OffsetMismatch):
                    log.append("s", wrong)
            log.append("s", part(2, "BC", 2), part(4, "D", 2))
            with refused(OffsetMismatch):
                log.append("s", part(4, "d"))

            assert log.version("s") == 4

    def test_a_lease_fences(self) -> None:
        with self.open() as log:
            old = log.leases.acquire("s", "one")
            with refused(LeaseHeld) as caught:
                log.leases.acquire("s", "two")
            assert caught[0].facts["holder"] == "one"
            assert not log.leases.is_free("s", "two")
            log.append("s", e.DeliveryAttempted(delivery="d", text="x"), lease=old)

            new = log.leases.acquire("s", "one")  # the same process, started anew

            with refused(LeaseLost):
                log.leases.check(old)
            with refused(LeaseLost):
                log.append("s", e.DeliveryAttempted(delivery="e", text="x"), lease=old)
            late = log.append("s", e.StreamChunkDelivered(delivery="d", through=1), lease=old)[0]
            assert late.generation == old.generation < new.generation
            log.leases.check(log.leases.renew(new))
            log.leases.release(new)
            assert log.leases.is_free("s", "two")
            assert log.leases.acquire("s", "two").generation > new.generation

    def test_a_lease_expires(self) -> None:
        with self.open() as log:
            short = log.leases.acquire("s", "one", ttl=0.005)
            threading.Event().wait(0.03)

            assert log.leases.is_free("s", "two")
            with refused(LeaseLost):
                log.append("s", e.DeliveryAttempted(delivery="d", text="x"), lease=short)
            log.leases.check(log.leases.renew(short))

    # --- following -------------------------------------------------------------------------------

    def test_a_subscription_misses_nothing(self) -> None:
        with self.open() as log:
            log.append("s", said("before"))

            def write() -> None:
                for n in range(200):
                    log.append("s", said(f"m{n}"), durable=n % 20 == 0)

            with log.subscribe() as subscription, ThreadPoolExecutor(1) as pool:
                pool.submit(write)
                got = [next(subscription).version for _ in range(201)]

            assert got == list(range(1, 202))


class SharedLogContract(SharedContract, LogContract):
    """What holds besides for a log that several processes open."""
