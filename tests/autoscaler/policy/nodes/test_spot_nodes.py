"""The least of a spot pool, and what stands in for it."""

from __future__ import annotations

from typing import Any

from pilotlight_autoscaler.policy.nodes.pool_view import PoolView
from pilotlight_autoscaler.policy.nodes.spot_nodes import (
    RELIEVED,
    SpotSigns,
    ready_nodes,
    relieved_nodes,
    spot_plan,
    stands_in,
)
from pilotlight_autoscaler.policy.nodes.wanted_nodes import wanted_nodes
from pilotlight_autoscaler.policy.spot.spot_fleet import SpotPlan
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.records.pools import LaunchRecord, LaunchState, PoolRecord, PoolState
from pilotlight_placement.asks.options import Prices
from pilotlight_placement.fleet.fleet import Fleet
from tests.builders.pools import launch, pool

NONE = SpotSigns()
SPOT = pool("spot", zones=("a", "b", "c"), purchase=Purchase.SPOT, least_nodes=2, fallback="sure")
SURE = pool("sure", zones=("a",))


def view(record: PoolRecord, *launches: LaunchRecord) -> PoolView:
    return PoolView(record=record, launches=launches, digest=record.terms.digest)


def spot(number: int, zone: str = "a", **more: Any) -> LaunchRecord:
    return launch(number, SPOT, zone=zone, spot=True, **more)


def sure(number: int, **more: Any) -> LaunchRecord:
    return launch(number, SURE, **{"stands_in": "spot", **more})


def test_what_is_missing_is_spread_and_stood_in_for() -> None:
    """A stand-in that comes already is no reason for another."""
    assert spot_plan(view(SPOT), view(SURE), NONE) == SpotPlan(spot=("a", "b"), on_demand=2)
    coming = sure(1, state=LaunchState.LAUNCHING)
    assert spot_plan(view(SPOT, spot(1)), view(SURE, coming), NONE) == SpotPlan(spot=("b",))
    assert spot_plan(view(SPOT, spot(1)), None, NONE) == SpotPlan(spot=("b",))


def test_nodes_that_leave_or_are_at_risk_are_replaced() -> None:
    """The former are stood in for, the latter serve on."""
    here = view(SPOT, spot(1), spot(2, "b"))
    leaving = SpotSigns(leaving=frozenset({"spot-n1"}), avoided={"spot": frozenset({"a"})})
    assert spot_plan(here, view(SURE), leaving) == SpotPlan(spot=("c",), on_demand=1)
    assert ready_nodes(here, leaving) == 1
    at_risk = SpotSigns(at_risk=frozenset({"spot-n1"}))
    assert spot_plan(here, view(SURE), at_risk) == SpotPlan(spot=("c",))
    assert spot_plan(here, view(SURE), SpotSigns(spares={"spot": 1})) == SpotPlan(spot=("c",))


def test_stand_ins_go_once_spot_nodes_are_ready() -> None:
    """Others of the fallback stand in for nobody, nor do those of a pool that is gone, or has another fallback now."""
    here, there = view(SPOT, spot(1), spot(2, "b")), view(SURE, sure(1), sure(2, stands_in=""))
    assert relieved_nodes(there, [here, there], NONE) == [(sure(1), RELIEVED)]
    assert relieved_nodes(there, [view(SPOT, spot(1)), there], NONE) == []
    assert relieved_nodes(here, [here, there], NONE) == []
    assert stands_in(sure(1), [here, there])
    assert not stands_in(sure(2, stands_in=""), [here, there])
    closed = PoolRecord(name="spot", terms=SPOT.terms, state=PoolState.DRAINING)
    assert not stands_in(sure(1), [view(closed), there])
    assert not stands_in(sure(1), [view(pool("spot", purchase=Purchase.SPOT)), there])


def test_both_are_launched_within_the_pools_limits() -> None:
    """By the decision of what to launch; where a zone has no machine another one is taken."""
    missing = {("g6.xlarge", "b"): 1e9}
    here = PoolView(record=SPOT, digest=SPOT.terms.digest, missing_until=missing)
    made = wanted_nodes((), [here, view(SURE)], Fleet(), Prices(), 0.0).wanted
    assert [(one.pool, one.stands_in) for one in made] == [("spot", "")] * 2 + [("sure", "spot")] * 2
    assert {one.zone for one in made if one.pool == "spot"} == {"a", "c"}
    tight = pool("sure", zones=("a",), most_nodes=1)
    limited = wanted_nodes((), [here, view(tight)], Fleet(), Prices(), 0.0).wanted
    assert [one.pool for one in limited] == ["spot", "spot", "sure"]
