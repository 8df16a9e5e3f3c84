"""Nodes that are not there yet."""

from __future__ import annotations

from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.records.pools import PoolState
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.machine_nodes import machine_node, pool_nodes
from pilotlight_placement.search.feasibility import could_hold
from tests.builders.pools import CPUS, EIGHT_L4, L4, pool


def test_a_machine_is_a_node_with_its_pools_domain() -> None:
    """Its host has what agents leave of it."""
    node = machine_node(pool("l4", L4, purchase=Purchase.SPOT), L4, region="eu", zone="b", name="n1")
    assert (node.domain.region, node.domain.zone, node.domain.pool, node.domain.spot) == ("eu", "b", "l4", True)
    assert (len(node.gpus), len(node.slots)) == (1, 4)
    assert node.host is not None
    assert (node.host.cpu_millis, node.host.memory) == (4000, 16 * GIB - GIB - 16 * GIB // 20)


def test_pools_have_a_node_of_each_kind_in_each_zone() -> None:
    """Of those that may have any."""
    pools = [
        pool("l4", L4, EIGHT_L4, zones=("a", "b")), pool("cpus", CPUS, zones=()),
        pool("none", most_nodes=0), pool("drained", state=PoolState.DRAINING),
    ]  # fmt: skip
    found = pool_nodes(pools, "eu", "here")
    assert [(node.domain.pool, node.domain.zone) for node in found] == [
        ("l4", "a"), ("l4", "b"), ("l4", "a"), ("l4", "b"), ("cpus", "here"),
    ]  # fmt: skip
    fleet = Fleet(found)
    assert could_hold(fleet, Ask(gpu=(GpuAsk("L4", 8),)))
    assert not could_hold(fleet, Ask(gpu=(GpuAsk("H100"),)))
