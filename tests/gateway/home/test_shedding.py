"""Which calls leave when capacity shrinks."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.home.call_admission import ServiceTime
from pilotlight_gateway.home.container_pool import ContainerPool
from pilotlight_gateway.home.queue import FairQueue
from pilotlight_gateway.home.shedding import shed
from pilotlight_gateway.home.tier_queue import FunctionCounters
from tests.builders.calls import call, credit
from tests.example_counts import examples

tiers, classes = st.sampled_from(["free", "paid", "enterprise"]), st.sampled_from(list(Priority))
TIERS = {"free": (0, 1.0), "paid": (1, 4.0), "enterprise": (2, 16.0)}


class World:
    """A queue, busy containers, and the instants at which calls leave by themselves."""

    def __init__(self, slots: int, hold_ms: float | None) -> None:
        self.queue = FairQueue(FunctionCounters())
        self.pool = ContainerPool()
        self.pool.update(credit("c1", 1, *(f"h{n}" for n in range(slots)), slots=slots), 0.0)
        self.service_time = ServiceTime()
        self.service_time.hold_ms = hold_ms
        self._calls = 0

    def wait(self, tier: str, count: int, seconds: float, tenant: str = "", **more: object) -> None:
        rank, weight = TIERS[tier]
        for _ in range(count):
            self._calls += 1
            described = call(f"{tier} {tenant} {self._calls}", tenant or tier, tier_rank=rank, weight=weight, **more)
            self.queue.push(described, cost=1.0, at=0.0).leaves_at = seconds

    def shed(self, at: float = 0.0) -> Counter[str]:
        """Shed, and say how many of each tier."""
        victims = shed(self.queue, self.pool, self.service_time, at)
        for entry, wait in victims:
            assert wait >= 0.0
            assert self.queue.remove(entry.call_id) is not None
        self.queue.check_integrity()
        return Counter(entry.call_id.split()[0] for entry, _ in victims)


def test_nothing_is_shed_that_can_be_served() -> None:
    """Ten calls a second serve twenty calls within three seconds."""
    world = World(1, 100.0)
    world.wait("free", 20, 3.0)
    assert not world.shed()


def test_what_cannot_be_served_is_shed_youngest_first() -> None:
    """Of forty calls with two seconds left, about the last twenty of the flow leave."""
    world = World(1, 100.0)
    world.wait("free", 40, 2.0)
    assert 17 <= world.shed()["free"] <= 22
    assert [entry.order for entry in world.queue] == list(range(len(world.queue)))
    assert not world.shed()


def test_free_gives_way_before_paid_and_paid_before_enterprise() -> None:
    """A higher tier loses nothing as long as a lower one has calls."""
    world = World(1, 100.0)
    for tier in TIERS:
        world.wait(tier, 15, 3.0)
    first = world.shed()
    assert first["enterprise"] == first["paid"] == 0
    assert 10 <= first["free"] <= 15

    world.service_time.hold_ms = 160.0
    world.shed()
    world.service_time.hold_ms = 250.0
    for _ in range(3):
        last = world.shed()
    assert {entry.call.tier_rank for entry in world.queue} == {2}
    assert last["enterprise"] == 0
    assert 10 <= len(world.queue) <= 13


def test_low_calls_that_could_be_served_go_for_high_ones_that_could_not() -> None:
    """Free calls have time and enterprise calls have not, so free calls leave."""
    world = World(1, 100.0)
    world.wait("free", 50, 1_000.0, tenant="a")
    world.wait("free", 50, 1_000.0, tenant="b")
    world.wait("enterprise", 18, 1.8)
    found = world.shed()
    assert found["free"] > 0
    assert found["enterprise"] == 0


def test_nothing_is_shed_for_a_guess() -> None:
    """Without a measured service time, or while a start of unknown length runs, calls wait."""
    world = World(1, None)
    world.wait("free", 100, 1.0)
    assert not world.shed()
    world.service_time.hold_ms = 100.0
    world.pool.update(credit("c2", 1, state=ContainerState.LOADING), 0.0)
    assert not world.shed()


def test_a_start_that_comes_in_time_saves_the_queue() -> None:
    """Capacity that is starting counts."""
    world = World(1, 100.0)
    world.wait("free", 40, 2.0)
    world.pool.start_ms = 500.0
    world.pool.update(credit("c2", 1, slots=9, state=ContainerState.LOADING), 0.0)
    assert not world.shed()


@examples(60)
@given(
    waiting=st.lists(st.tuples(tiers, st.integers(1, 30), st.integers(1, 60), classes), min_size=1, max_size=8),
    slots=st.integers(1, 4),
)
def test_a_higher_tier_loses_only_what_no_lower_one_can_save(
    waiting: list[tuple[str, int, int, Priority]], slots: int
) -> None:
    """In any queue, where a call is shed, no call of a lower tier before it is left."""
    world = World(slots, 100.0)
    for number, (tier, count, tenths, priority) in enumerate(waiting):
        world.wait(tier, count, tenths / 10.0, tenant=f"{tier}{number}", priority=priority)
    rounds = len(world.queue)
    for _ in range(rounds):
        found = world.shed()
        left = {entry.call.tier_rank for entry in world.queue}
        for tier, (rank, _) in TIERS.items():
            if found[tier]:
                assert not any(lower < rank for lower in left)
        if not found:
            break
    assert not world.shed()


def test_many_tenants_give_way_alike() -> None:
    """Of ten calls of each of a thousand tenants, the last of each leaves."""
    world = World(64, 100.0)
    for tenant in range(1_000):
        world.wait("free", 10, 12.0, tenant=f"t{tenant}")
    assert 1_000 <= world.shed()["free"] <= 3_000
    depths = {world.queue.depth(f"t{tenant}", Priority.STANDARD) for tenant in range(1_000)}
    assert max(depths) - min(depths) <= 1
