"""How much one machine holds."""

from __future__ import annotations

from pilotlight_autoscaler.policy.nodes.machine_capacity import MOST_HELD, capacity_for
from pilotlight_autoscaler.policy.nodes.pool_view import PoolView, hypothetical_node
from pilotlight_core.model.api.pools.pool_terms import MachineType
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import GIB, Ask
from tests.builders.pools import EIGHT_L4, pool

MIG = MachineType(name="mig", gpus="1xH100:mig", cores=64)


def held(ask: Ask, type_: MachineType, zone: str = "a") -> int:
    record = pool(f"of-{type_.name}", type_)
    return capacity_for(ask, PoolView(record=record, digest=record.terms.digest), type_, zone)


def test_whole_devices_and_slices_are_counted_as_placement_gives_them() -> None:
    """Eight GPUs for eight, four for pairs, seven slices of one that is cut."""
    assert held(Ask(gpu=(GpuAsk("L4"),)), EIGHT_L4) == 8
    assert held(Ask(gpu=(GpuAsk("L4", 2),)), EIGHT_L4) == 4
    assert held(Ask(gpu=(GpuAsk("H100"),), vram=4 * GIB), MIG) == 7
    assert held(Ask(), MIG) == MOST_HELD
    assert held(Ask(gpu=(GpuAsk("T4"),)), MIG) == 0


def test_a_zone_counts_where_it_is_asked_for() -> None:
    """Else machines of all zones are alike."""
    ask = Ask(gpu=(GpuAsk("L4"),), zones=("b",))
    assert (held(ask, EIGHT_L4, "a"), held(ask, EIGHT_L4, "b")) == (0, 8)


def test_what_a_node_has_shown_goes_before_what_is_said_of_its_type() -> None:
    """Also if the other was worked out before."""
    record = pool("shown", EIGHT_L4)
    view = PoolView(record=record, digest=record.terms.digest)
    ask = Ask(gpu=(GpuAsk("L4"),))
    assert capacity_for(ask, view, EIGHT_L4, "a") == 8
    one = pool("shown", MachineType(name=EIGHT_L4.name, gpus="1xL4"))
    shown = hypothetical_node(PoolView(record=one), one.terms.types[0], "a", "n")
    seen = PoolView(record=record, digest=record.terms.digest, seen={EIGHT_L4.name: shown})
    assert capacity_for(ask, seen, EIGHT_L4, "a") == 1
