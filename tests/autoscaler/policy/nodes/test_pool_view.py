"""Pools as decisions see them."""

from __future__ import annotations

from dataclasses import replace

from pilotlight_autoscaler.policy.nodes.pool_view import (
    PoolTotals,
    PoolView,
    as_empty,
    gpu_count,
    hourly_price,
    hypothetical_node,
    limit_reached,
)
from pilotlight_core.model.api.pools.pool_terms import MachineType
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.records.pools import LaunchState
from pilotlight_placement.asks.options import Prices
from tests.builders.pools import CPUS, EIGHT_L4, L4, launch, pool


def test_what_goes_costs_and_does_not_stay() -> None:
    """Until it is gone."""
    going, coming = launch(1, state=LaunchState.ENDING), launch(2, state=LaunchState.LAUNCHING)
    view = PoolView(record=pool(), launches=(going, coming, launch(3)))
    assert [each.slot for each in view.staying] == [2, 3]
    assert [each.slot for each in view.coming] == [2]
    assert PoolTotals.of(view.launches) == PoolTotals(nodes=3, gpus=3, usd_per_hour=3.0)
    assert PoolTotals(nodes=3).plus(8, 6.0) == PoolTotals(nodes=4, gpus=8, usd_per_hour=6.0)


def test_a_limit_is_named() -> None:
    """The first that is passed; at it there is none."""
    record = pool(most_nodes=1, most_gpus=8, most_usd_per_hour=6.0)
    assert limit_reached(record, PoolTotals(nodes=1, gpus=8, usd_per_hour=6.0)) == ""
    assert limit_reached(record, PoolTotals(nodes=2)) == "its limit of 1 node"
    assert limit_reached(record, PoolTotals(nodes=1, gpus=9)) == "its limit of 8 GPUs"
    assert limit_reached(record, PoolTotals(usd_per_hour=6.1)) == "its limit of $6 an hour"


def test_prices_and_counts_of_a_type() -> None:
    """Said by people, or of the book: spot costs a part, and CPUs by the core."""
    unpriced = MachineType(name="u", gpus="2xL4,1xT4")
    on_demand, spot = PoolView(record=pool()), PoolView(record=pool(purchase=Purchase.SPOT))
    assert hourly_price(on_demand, EIGHT_L4, Prices()) == 6.0
    assert gpu_count(unpriced) == 3
    assert 0.0 < hourly_price(spot, unpriced, Prices()) < hourly_price(on_demand, unpriced, Prices())
    assert hourly_price(on_demand, replace_price(CPUS), Prices()) > 0.0


def replace_price(type_: MachineType) -> MachineType:
    return MachineType(name=type_.name, cores=type_.cores)


def test_zones_and_types_of_a_pool() -> None:
    """Where none is said, that of the controller."""
    view = PoolView(record=pool(zones=()), zone="here", missing_until={(L4.name, "here"): 10.0})
    assert view.zones == ("here",)
    assert view.type_named("g6.xlarge") == L4
    assert view.type_named("other") is None
    assert view.lacks(L4.name, "here", 9.0)
    assert not view.lacks(L4.name, "here", 10.0)


def test_a_node_that_was_seen_is_what_its_type_is_like() -> None:
    """Without what was on it, under the new name and in the new zone."""
    view = PoolView(record=pool("l4", EIGHT_L4))
    node = hypothetical_node(view, EIGHT_L4, "a", "n1")
    assert len(node.gpus) == 8
    worn = replace(node, draining=True, gpus=tuple(replace(gpu, withdrawn="hot", kept="x") for gpu in node.gpus[:1]))
    seen = hypothetical_node(replace(view, seen={EIGHT_L4.name: as_empty(worn)}), EIGHT_L4, "b", "n2")
    assert (seen.name, seen.domain.zone, seen.domain.pool, seen.draining) == ("n2", "b", "l4", False)
    assert [(gpu.withdrawn, gpu.kept) for gpu in seen.gpus] == [("", "")]
