"""What a pool of spot machines launches and ends."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_autoscaler.policy.spot.spot_fleet import (
    PoolInstance,
    SpotPlan,
    choose_zone,
    on_demand_wanted,
    plan_spot_fleet,
)

ZONES = ("a", "b", "c")


def spot(name: str, zone: str = "a", **more: Any) -> PoolInstance:
    return PoolInstance(name=name, zone=zone, **{"is_spot": True, "is_ready": True, **more})


def on_demand(name: str, **more: Any) -> PoolInstance:
    return PoolInstance(name=name, zone="", **{"is_spot": False, "is_ready": True, **more})


def test_machines_are_spread_over_zones() -> None:
    """The one with the fewest goes first; one that is avoided only where there is no other."""
    plan = plan_spot_fleet(4, (), ZONES)
    assert Counter(plan.spot) == {"a": 2, "b": 1, "c": 1}
    assert plan_spot_fleet(3, [spot("s1", "b")], ZONES, {"a"}).spot == ("c", "b")
    assert choose_zone(("a",), Counter(), {"a"}) == "a"
    assert choose_zone((), Counter()) is None


def test_on_demand_stands_in_for_what_is_not_ready() -> None:
    """A spot machine that starts may never come up. Once it has, what stood in for it ends, the latest first."""
    assert (on_demand_wanted(4, 1), on_demand_wanted(4, 5)) == (3, 0)
    starting = [spot("s1"), spot("s2", "b", is_ready=False)]
    assert plan_spot_fleet(2, starting, ZONES) == SpotPlan(on_demand=1)
    assert plan_spot_fleet(2, [*starting, on_demand("o1", is_ready=False)], ZONES) == SpotPlan()
    over = [spot("s1"), spot("s2", "b"), on_demand("o1"), on_demand("o2", is_ready=False)]
    assert plan_spot_fleet(2, over, ZONES).ends == ("o2", "o1")
    assert plan_spot_fleet(2, starting, ZONES, may_fall_back=False) == SpotPlan()


def test_a_machine_that_is_taken_away_is_replaced_at_once() -> None:
    """Elsewhere and, as long as that is not ready, on demand."""
    plan = plan_spot_fleet(2, [spot("s1", "a", is_leaving=True), spot("s2", "b")], ZONES, {"a"})
    assert plan == SpotPlan(spot=("c",), on_demand=1)


def test_a_machine_at_risk_is_replaced_before_it_ends() -> None:
    """It serves until the other one is ready, so nothing on demand is needed."""
    at_risk = spot("s1", "a", is_at_risk=True)
    assert plan_spot_fleet(2, [at_risk, spot("s2", "b")], ZONES) == SpotPlan(spot=("c",))
    assert plan_spot_fleet(2, [at_risk, spot("s2", "b"), spot("s3", "c", is_ready=False)], ZONES) == SpotPlan()
    replaced = [at_risk, spot("s2", "b"), spot("s3", "c")]
    assert plan_spot_fleet(2, replaced, ZONES) == SpotPlan(ends=("s1",))


def test_spares_are_launched_and_what_is_beyond_ends() -> None:
    """What starts ends before what is ready."""
    assert len(plan_spot_fleet(2, (), ZONES, spares=1).spot) == 3
    beyond = [spot("s1"), spot("s2", "b", is_ready=False), spot("s3", "c")]
    assert plan_spot_fleet(2, beyond, ZONES, spares=1).ends == ()
    assert plan_spot_fleet(1, beyond, ZONES).ends == ("s2", "s3")


MACHINES = st.lists(
    st.builds(
        PoolInstance, name=st.uuids().map(str), zone=st.sampled_from(ZONES), is_spot=st.booleans(),
        is_ready=st.booleans(), is_leaving=st.booleans(), is_at_risk=st.booleans(),
    ),
    max_size=8,
)  # fmt: skip


@given(MACHINES, st.integers(0, 5), st.integers(0, 2))
def test_whatever_there_is_a_plan_comes_to_rest(machines: list[PoolInstance], wanted: int, spares: int) -> None:
    """Done, and everything ready, nothing is left to do, and as many spot machines as wanted stand alone."""
    for _ in range(3):
        plan = plan_spot_fleet(wanted, machines, ZONES, spares=spares)
        machines = [
            PoolInstance(name=one.name, zone=one.zone, is_spot=one.is_spot, is_ready=True, is_at_risk=one.is_at_risk)
            for one in machines
            if one.name not in plan.ends and not one.is_leaving
        ]
        machines += [spot(f"s{len(machines)}-{n}-{zone}", zone) for n, zone in enumerate(plan.spot)]
        machines += [on_demand(f"o{len(machines)}-{n}") for n in range(plan.on_demand)]
    assert plan_spot_fleet(wanted, machines, ZONES, spares=spares) == SpotPlan()
    assert [one.is_spot for one in machines] == [True] * (wanted + spares)
