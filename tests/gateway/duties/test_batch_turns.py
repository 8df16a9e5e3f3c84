"""Batches are driven in turns: every tenant's comes, however many others have."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from pilotlight_core.model.records.batches import BatchRecord, BatchState
from pilotlight_gateway.duties.batch_turns import DRIVEN_AT_MOST, DRIVEN_PER_TENANT, TURN_S, BatchTurns
from tests.gateway.batches.makers import batch


def made(tenant: str, number: int, **more: object) -> BatchRecord:
    """The tenant's batch with that number, the lower the older."""
    return batch(tenant, id=f"batch_{tenant}-{number}", created_at=float(number), **more)


def of(tenants: int, each: int) -> list[BatchRecord]:
    return [made(f"t{tenant}", number) for tenant in range(tenants) for number in range(each)]


class Duty:
    """Drives what has its turn, as the real one does."""

    def __init__(self, records: list[BatchRecord], places: int = DRIVEN_AT_MOST) -> None:
        self.records = records
        self.turns = BatchTurns(places=places)
        self.driven: dict[str, BatchRecord] = {}

    def look(self, at: float) -> float | None:
        """Begin and end turns; when to look again."""
        chosen, look_at = self.turns.choose(self.records, at)
        for key in self.driven.keys() - {record.key for record in chosen}:
            self.turns.end(self.driven.pop(key), at)
        for record in chosen:
            if record.key not in self.driven:
                self.turns.begin(record, at)
                self.driven[record.key] = record
        return look_at

    @property
    def ids(self) -> list[str]:
        return sorted(record.id for record in self.driven.values())


def test_two_batches_of_a_tenant_are_driven_at_a_time() -> None:
    """The oldest first; those that are over do not count, and what is to be cancelled is not waited with."""
    records = [made(tenant, number) for tenant in "ab" for number in range(4)]
    records[0] = structs.replace(records[0], state=BatchState.COMPLETED)
    records[7] = structs.replace(records[7], state=BatchState.CANCELLING)
    duty = Duty(records)

    assert duty.look(0.0) is None
    assert duty.ids == ["batch_a-1", "batch_a-2", "batch_b-0", "batch_b-3"]


def test_nobodys_second_batch_keeps_anothers_first_waiting() -> None:
    """Longer than for a turn; then each has one, and the places that are left go round."""
    duty = Duty(of(64, 2))
    assert duty.look(0.0) is None
    duty.records = of(100, 2)
    assert duty.look(1.0) == TURN_S
    assert Counter(record.tenant for record in duty.driven.values()) == {f"t{n}": 2 for n in range(64)}

    duty.look(TURN_S)
    now = Counter(record.tenant for record in duty.driven.values())
    assert len(now) == 100
    assert now.total() == DRIVEN_AT_MOST


@pytest.mark.parametrize("tenants", [129, 200, 1_000])
def test_every_tenant_has_its_turn(tenants: int) -> None:
    """Within as many turns as it takes for all, again and again; and every turn is whole."""
    duty = Duty(of(tenants, 3))
    at, since = 0.0, {f"t{tenant}": 0.0 for tenant in range(tenants)}
    rounds = -(-tenants // DRIVEN_AT_MOST)
    for _ in range(6 * rounds):
        before = set(duty.driven)
        look_at = duty.look(at)
        assert look_at is not None
        assert before <= set(duty.driven) or at >= TURN_S
        for record in duty.driven.values():
            since[record.tenant] = look_at
        assert at - min(since.values()) <= rounds * TURN_S
        at = look_at


def test_a_turn_lasts_until_somebody_waits() -> None:
    """And no shorter than it says: going on with a batch costs a second look at it."""
    duty = Duty(of(2, 1), places=2)
    duty.look(0.0)
    assert duty.look(10 * TURN_S) is None
    duty.records = of(3, 1)
    duty.look(10 * TURN_S + 1)
    assert duty.ids == ["batch_t0-0", "batch_t2-0"]
    assert duty.look(10 * TURN_S + 2) == 11 * TURN_S + 1
    duty.look(10 * TURN_S + 2)
    assert duty.ids == ["batch_t1-0", "batch_t2-0"]  # the first one's turn was long over


def test_what_is_forgotten_of_tenants_without_batches() -> None:
    """Nothing is kept of them."""
    duty = Duty(of(3, 1), places=1)
    for at in range(4):
        duty.look(at * TURN_S)
    duty.records = []
    duty.look(5 * TURN_S)
    duty.look(6 * TURN_S)
    assert duty.turns._rested == {}
    assert duty.turns._turns == {}


changes = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.floats(0.0, 100.0)), max_size=50)


@given(changes, st.integers(1, 6))
def test_no_more_are_driven_than_may_be(steps: list[tuple[int, int, float]], places: int) -> None:
    """Of all, and of a tenant; nobody waits while there is a place; no turn is cut short unless its batch is gone."""
    duty, at, began = Duty([], places), 0.0, dict[str, float]()
    for tenant, number, pause in steps:
        at += pause
        record = made(f"t{tenant}", number)
        known = [one for one in duty.records if one.key != record.key]
        duty.records = known if len(known) < len(duty.records) else [*known, record]
        before = set(duty.driven)
        duty.look(at)
        counts = Counter(one.tenant for one in duty.driven.values())
        may = sum(min(DRIVEN_PER_TENANT, own) for own in Counter(one.tenant for one in duty.records).values())
        assert len(duty.driven) == min(places, may)
        assert max(counts.values(), default=0) <= DRIVEN_PER_TENANT
        there = {one.key for one in duty.records}
        for key in before - set(duty.driven):
            oldest = sorted(one.key for one in duty.records if one.tenant == key.partition(".")[0])
            assert key not in there or at - began[key] >= TURN_S or key not in oldest[:DRIVEN_PER_TENANT]
        began = {key: began.get(key, at) for key in duty.driven}
