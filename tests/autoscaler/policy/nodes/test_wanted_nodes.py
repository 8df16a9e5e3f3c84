"""What to launch for containers without a place."""

from __future__ import annotations

from typing import Any

from pilotlight_autoscaler.policy.nodes.pool_view import PoolView
from pilotlight_autoscaler.policy.nodes.spot_nodes import SpotSigns
from pilotlight_autoscaler.policy.nodes.wanted_nodes import AT_ONCE, NodesDecision, UnplacedStarts, wanted_nodes
from pilotlight_core.model.api.pools.pool_terms import MachineType
from pilotlight_core.model.placing import Over, Purchase, Spread
from pilotlight_core.model.records.pools import LaunchState, PoolRecord, PoolState
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.asks.options import Prices
from pilotlight_placement.fleet.fleet import Fleet
from tests.builders.pools import CPUS, EIGHT_L4, L4, launch, pool

NOW = 1_000.0


def ask(kind: str = "L4", function: str = "acme:shop.greet", **more: Any) -> Ask:
    return Ask(function=function, tenant="acme", gpu=(GpuAsk(kind),) if kind else (), **more)


def short(count: int = 1, version: str = "v1", **more: Any) -> UnplacedStarts:
    return UnplacedStarts(version=version, ask=ask(**more), count=count)


def view(record: PoolRecord | None = None, *launches: Any, **more: Any) -> PoolView:
    record = record or pool()
    return PoolView(record=record, launches=launches, digest=record.terms.digest, **more)


def avoiding(zone: str) -> SpotSigns:
    return SpotSigns(avoided={"l4": frozenset({zone})})


def decide(*starts: UnplacedStarts, pools: Any, fleet: Fleet | None = None, **more: Any) -> NodesDecision:
    fleet = fleet or Fleet()
    before = fleet.revision
    found = wanted_nodes(starts, pools, fleet, Prices(), NOW, **more)
    assert fleet.revision == before
    assert not fleet.places  # a decision leaves nothing behind
    return found


def test_what_has_no_place_gets_a_machine_that_holds_it() -> None:
    """One for one, with its price and for whom."""
    (wanted,) = decide(short(), pools=[view(pool("cpus", CPUS)), view()]).wanted

    assert (wanted.pool, wanted.type, wanted.zone) == ("l4", "g6.xlarge", "a")
    assert (wanted.gpus, wanted.usd_per_hour, wanted.versions) == (1, 1.0, ("v1",))


def test_nothing_is_launched_for_what_no_pool_could_hold() -> None:
    """And nothing is said of pools then."""
    assert decide(short(kind="H100"), pools=[view()]) == NodesDecision()


def test_the_machine_with_the_least_dollars_for_each_container_is_taken() -> None:
    """One that is cheaper where few wait, the large one where it is filled."""
    record = pool("l4", L4, EIGHT_L4)
    assert [wanted.type for wanted in decide(short(), pools=[view(record)]).wanted] == ["g6.xlarge"]
    assert [wanted.type for wanted in decide(short(8), pools=[view(record)]).wanted] == ["g6.48xlarge"]


def test_the_heaviest_pool_goes_first_whatever_it_costs() -> None:
    """Weights are people's word."""
    dear = MachineType(name="dear", gpus="1xL4", usd_per_hour=9.0)
    (wanted,) = decide(short(), pools=[view(), view(pool("dear", dear, weight=10))]).wanted
    assert wanted.pool == "dear"


def test_what_is_on_its_way_is_not_launched_twice() -> None:
    """It is waited for, and only the rest is launched."""
    coming = launch(1, state=LaunchState.LAUNCHING)

    decision = decide(short(1), pools=[view(None, coming)])
    assert (decision.wanted, decision.awaited) == ((), {"v1": coming.id})
    assert len(decide(short(3), pools=[view(None, coming)]).wanted) == 2


def test_containers_of_several_versions_share_a_machine() -> None:
    """As placement would have them."""
    (wanted,) = decide(
        short(), short(version="v2", function="acme:shop.other"), pools=[view(pool("l4", EIGHT_L4))]
    ).wanted
    assert wanted.versions == ("v1", "v2")


def test_a_pool_stays_within_its_limits() -> None:
    """Of nodes, GPUs and dollars, with those that go, which cost until they are gone; and says which."""
    going = launch(1, state=LaunchState.DRAINING)
    for limit, words in (
        ({"most_nodes": 2}, "the pool l4 is at its limit of 2 nodes"),
        ({"most_gpus": 2}, "the pool l4 is at its limit of 2 GPUs"),
        ({"most_usd_per_hour": 2.5}, "the pool l4 is at its limit of $2.5 an hour"),
    ):
        decision = decide(short(3), pools=[view(pool(**limit), going)])
        assert len(decision.wanted) == 1
        assert decision.refused == {"v1": words}


def test_a_drained_pool_gets_nothing() -> None:
    """And that is said."""
    decision = decide(short(), pools=[view(pool(state=PoolState.DRAINING))])
    assert (decision.wanted, decision.refused) == ((), {"v1": "the pool l4 is drained"})


def test_where_the_provider_had_none_it_is_not_asked_for_a_while() -> None:
    """Another zone, another type, or nothing; later again."""
    record = pool(zones=("a", "b"))
    missing = {("g6.xlarge", "a"): NOW + 60.0}
    (wanted,) = decide(short(), pools=[view(record, missing_until=missing)]).wanted
    assert wanted.zone == "b"

    missing[("g6.xlarge", "b")] = NOW + 60.0
    decision = decide(short(), pools=[view(record, missing_until=missing)])
    assert decision.wanted == ()
    assert "no capacity" in decision.refused["v1"]
    passed = dict.fromkeys(missing, NOW - 1.0)
    assert len(decide(short(), pools=[view(record, missing_until=passed)]).wanted) == 1


def test_a_fallback_is_asked_only_when_capacity_is_missing() -> None:
    """Not because the pool before it is full, nor because it would be cheaper."""
    cheap = pool("cheap", MachineType(name="cheap", gpus="1xL4", usd_per_hour=0.1))
    first = pool("first", fallback="cheap", most_nodes=1)
    assert [one.pool for one in decide(short(), pools=[view(cheap), view(first)]).wanted] == ["first"]
    assert [one.pool for one in decide(short(2), pools=[view(cheap), view(first)]).wanted] == ["first"]

    missing = {("g6.xlarge", "a"): NOW + 60.0}
    pools = [view(cheap), view(first, missing_until=missing)]
    assert [one.pool for one in decide(short(), pools=pools).wanted] == ["cheap"]


def test_the_fallback_of_a_drained_pool_is_a_pool_as_others_are() -> None:
    """The one before it is asked no more: else nothing would be launched."""
    first, sure = pool("first", fallback="sure", state=PoolState.DRAINING), pool("sure")
    assert [one.pool for one in decide(short(), pools=[view(first), view(sure)]).wanted] == ["sure"]


def test_machines_are_spread_over_zones_and_not_where_spot_nodes_were_just_taken() -> None:
    """Unless the pool has no other zone."""
    record = pool(zones=("a", "b", "c"), purchase=Purchase.SPOT)
    zones = sorted(one.zone for one in decide(short(3), pools=[view(record)]).wanted)
    assert zones == ["a", "b", "c"]
    assert {one.zone for one in decide(short(3), pools=[view(record)], signs=avoiding("a")).wanted} == {"b", "c"}
    only = pool(zones=("a",), purchase=Purchase.SPOT)
    assert [one.zone for one in decide(short(), pools=[view(only)], signs=avoiding("a")).wanted] == ["a"]
    on_demand = pool(zones=("a",))
    assert [one.zone for one in decide(short(), pools=[view(on_demand)], signs=avoiding("a")).wanted] == ["a"]


def test_what_a_function_asks_of_its_place_counts() -> None:
    """Purchase, zones, and how many may be in one."""
    spot, plain = pool("spot", purchase=Purchase.SPOT, zones=("a", "b")), pool("plain", zones=("b",))
    pools = [view(spot), view(plain)]
    (wanted,) = decide(short(purchase=Purchase.ON_DEMAND), pools=pools).wanted
    assert wanted.pool == "plain"
    (wanted,) = decide(short(zones=("a",)), pools=pools).wanted
    assert (wanted.pool, wanted.zone) == ("spot", "a")
    crowd = short(4, spread=Spread(over=Over.ZONE, most=1))
    assert sorted(one.zone for one in decide(crowd, pools=[view(spot)]).wanted) == ["a", "b"]


def test_memory_of_the_host_counts() -> None:
    """Less what agents keep of it: two of 6 GiB are too much for a machine of 16 less its reserve."""
    assert len(decide(short(2, kind="", memory=8 * GIB), pools=[view()]).wanted) == 2
    assert decide(short(1, kind="", memory=16 * GIB), pools=[view()]).wanted == ()


def test_other_types_that_do_as_well_and_cost_about_as_much_may_be_taken_instead() -> None:
    """The provider chooses among them by price and capacity; limits hold for the dearest."""
    other = MachineType(name="g5.xlarge", gpus="1xL4", cores=4, memory_gib=16, usd_per_hour=1.4)
    dear = MachineType(name="dear", gpus="1xL4", cores=4, memory_gib=16, usd_per_hour=2.0)
    (wanted,) = decide(short(), pools=[view(pool("l4", L4, other, dear))]).wanted
    assert wanted.types == ("g6.xlarge", "g5.xlarge")
    assert wanted.usd_per_hour == 1.4


def test_a_pool_has_its_least_nodes_in_any_case() -> None:
    """What waits is placed on them first; those that go do not count."""
    record = pool(least_nodes=2)
    decision = decide(short(2), pools=[view(record, launch(1, state=LaunchState.DRAINING))])
    assert len(decision.wanted) == 2
    assert decide(pools=[view(record, launch(1), launch(2))]).wanted == ()


def test_one_decision_is_bounded() -> None:
    """However much waits."""
    record = pool(most_nodes=1_000)
    assert len(decide(short(1_000), pools=[view(record)]).wanted) == AT_ONCE


def test_a_price_that_nobody_says_is_that_of_the_book() -> None:
    """Of its GPUs, or of its cores."""
    record = pool("l4", MachineType(name="unpriced", gpus="2xL4", cores=8))
    (wanted,) = decide(short(), pools=[view(record)]).wanted
    assert wanted.usd_per_hour > 0.0
