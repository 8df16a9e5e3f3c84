"""Who is next, and who may take from whom: weighted shares with guarantees."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_autoscaler.policy.missing_starts import MissingStarts
from pilotlight_autoscaler.policy.shares import ShareTerms, TenantShares, affordable
from pilotlight_placement.fleet.tenant_holdings import HeldResources

SLOT = HeldResources(slots=1)
GPU = HeldResources(vram=80, compute=1_000_000)
FLEET = HeldResources(vram=800, compute=10_000_000, slots=100)


def shares(held: dict[str, HeldResources], capacity: HeldResources = FLEET, **terms: ShareTerms) -> TenantShares:
    """The shares of tenants that hold these; those without terms have a weight of 1."""
    every = {tenant: ShareTerms() for tenant in held} | terms
    return TenantShares(capacity, lambda tenant: held.get(tenant, HeldResources()), every)


def slots(count: int) -> HeldResources:
    return HeldResources(slots=count)


def missing(tenant: str, ask: str, count: int = 1, need: HeldResources = SLOT) -> MissingStarts[str]:
    return MissingStarts(ask=ask, tenant=tenant, need=need, count=count)


def test_a_share_is_of_what_a_tenant_has_most_of() -> None:
    """A tenth of all GPUs is more than a twentieth of all slots."""
    known = shares({"acme": GPU.plus(SLOT, 5), "zoo": slots(50)}, zoo=ShareTerms(weight=10.0))

    assert known.share("acme") == pytest.approx(0.1)
    assert known.level("zoo") == pytest.approx(0.05)
    assert shares({}, HeldResources()).share("acme", SLOT) == 0.0


def test_what_is_free_is_dealt_out_to_the_lowest_level() -> None:
    """First to who is below its guarantee, then by weight; functions of a tenant take turns; the rest waits."""
    known = shares(
        {"a": slots(10), "b": slots(20)}, b=ShareTerms(weight=2.0), c=ShareTerms(weight=0.01, guarantee=0.02)
    )
    wanted = [missing("a", "a1", 2), missing("a", "a2", 9), missing("b", "b1", 50), missing("c", "c1", 5)]

    dealt = known.in_turn(wanted, slots(8))

    assert sum(count for _, count in dealt) == 66
    started: dict[str, int] = {}
    left = 8
    for ask, count in dealt:
        started[ask] = started.get(ask, 0) + min(count, left)
        left -= min(count, left)
    assert started["c1"] == 2
    assert started["a1"] + started["a2"] == started["b1"] // 2 == 2


def test_what_has_no_room_holds_up_nothing_else_of_its_tenant() -> None:
    """A GPU is wanted first, and only slots are free."""
    known = shares({"acme": GPU})
    wanted = [missing("acme", "gpu", 3, GPU), missing("acme", "cpu", 2), missing("acme", "never", 9, HeldResources())]

    assert known.in_turn(wanted, slots(2)) == [("cpu", 2), ("gpu", 3), ("never", 9)]


def test_a_guarantee_is_taken_from_what_others_borrow() -> None:
    """However low their level; never from another's guarantee."""
    known = shares(
        {"late": slots(10), "crowd": slots(5), "safe": slots(20)},
        late=ShareTerms(weight=0.01, guarantee=0.2), safe=ShareTerms(guarantee=0.2),
    )  # fmt: skip

    assert known.is_below_guarantee("late")
    assert known.may_claim("late", SLOT, highest=0.0)
    assert known.may_take("late", SLOT, "crowd", SLOT)
    assert not known.may_take("late", SLOT, "safe", SLOT)


def test_who_borrows_may_have_so_much() -> None:
    """Its guarantee and what it may borrow, together."""
    known = shares({"acme": slots(30)}, acme=ShareTerms(guarantee=0.2, borrow=0.25))

    assert known.room("acme", SLOT) == 15
    assert known.room("acme", SLOT, slots(14)) == 1
    assert known.room("zoo", SLOT) is None
    assert known.reached("acme").allowed == pytest.approx(0.45)


def test_guarantees_that_are_too_much_are_lowered_alike() -> None:
    """Two changes at once may have passed each other."""
    terms = {"a": ShareTerms(guarantee=0.9), "b": ShareTerms(guarantee=0.6), "c": ShareTerms()}

    assert [affordable(terms)[name].guarantee for name in "abc"] == pytest.approx([0.6, 0.4, 0.0])
    assert affordable({"a": terms["a"], "c": terms["c"]})["a"].guarantee == 0.9


@given(
    held=st.lists(st.integers(0, 40), min_size=2, max_size=6),
    weights=st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=6, max_size=6),
    guarantees=st.lists(st.sampled_from([0.0, 0.0, 0.1, 0.15]), min_size=6, max_size=6),
)
def test_exchanges_come_to_an_end_and_leave_guarantees_alone(
    held: list[int], weights: list[float], guarantees: list[float]
) -> None:
    """All tenants want all: nobody takes back what it gave at once, and in the end nobody may take anything."""
    capacity = slots(max(1, sum(held)))
    has = {f"t{n}": slots(count) for n, count in enumerate(held)}
    terms = {f"t{n}": ShareTerms(weight=weights[n], guarantee=guarantees[n]) for n in range(len(held))}
    known = TenantShares(capacity, lambda tenant: has[tenant], terms)
    exchanges = 0
    while True:
        pairs = [
            (one, other)
            for one, other in permutations(has, 2)
            if has[other].slots and known.may_take(one, SLOT, other, SLOT)
        ]
        if not pairs:
            break
        claimant, victim = min(pairs, key=lambda pair: (known.turn(pair[0]), -known.level(pair[1])))
        kept = known.share(victim) >= known.terms(victim).guarantee
        has[claimant], has[victim] = has[claimant].plus(SLOT), has[victim].plus(SLOT, -1)
        assert not known.may_take(victim, SLOT, claimant, SLOT)
        assert not (kept and known.is_below_guarantee(victim))
        exchanges += 1
        assert exchanges <= 2 * sum(held) + 10
    assert sum(each.slots for each in has.values()) == sum(held)
    assert known.in_turn([missing("t0", "x", 3)], slots(1)) == known.in_turn([missing("t0", "x", 3)], slots(1))
