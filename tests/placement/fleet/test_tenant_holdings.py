"""What tenants hold is counted with each change, also one that is undone."""

from __future__ import annotations

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.audit import check_integrity
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.tenant_holdings import NOTHING_HELD, HeldResources, resources_asked
from pilotlight_placement.hardware.catalogue import standard
from pilotlight_placement.hardware.node import Gpu, Node, PlacedContainer, Slice, Slot

H100 = standard()["H100-80GB"]


def node(name: str = "n", *, draining: bool = False) -> Node:
    """Two H100 and three CPU slots."""
    slots = tuple(Slot(id=f"cpu-{n}", kind=SliceKind.CPU, type="CPU", memory=1, ppm=250_000) for n in range(3))
    return Node(name=name, gpus=tuple(Gpu(id=f"g{n}", device=H100) for n in range(2)), slots=slots, draining=draining)


def container(name: str, *ids: str, kind: SliceKind = SliceKind.GPU, tenant: str = "acme") -> PlacedContainer:
    memory = H100.memory if kind is SliceKind.GPU else 1
    slice_ = Slice(node="n", kind=kind, type="x", ids=ids, memory=memory, slot=kind is SliceKind.CPU)
    return PlacedContainer(container=name, slice=slice_, tenant=tenant)


def test_each_tenant_holds_what_its_containers_do() -> None:
    """GPUs by memory and compute, CPU slots by their number; a trial leaves nothing behind."""
    fleet = Fleet([node()])
    assert fleet.capacity == HeldResources(vram=2 * H100.memory, compute=2_000_000, slots=3)
    fleet.hold(container("c1", "g0"))
    fleet.hold(container("c2", "cpu-0", kind=SliceKind.CPU, tenant="zoo"))
    with fleet.trial():
        fleet.hold(container("c3", "g1", tenant="zoo"))
        fleet.release("c1")
        assert fleet.holdings.of("acme") == NOTHING_HELD
        assert fleet.holdings.of("zoo") == HeldResources(vram=H100.memory, compute=1_000_000, slots=1)
        check_integrity(fleet)

    assert fleet.holdings.of("acme") == HeldResources(vram=H100.memory, compute=1_000_000)
    assert fleet.holdings.of("zoo") == HeldResources(slots=1)
    assert set(fleet.holdings.tenants()) == {"acme", "zoo"}
    assert fleet.holdings.total == HeldResources(vram=H100.memory, compute=1_000_000, slots=1)


def test_a_node_that_drains_is_not_shared() -> None:
    """Neither what it has, nor what is on it."""
    fleet = Fleet([node(), node("other")])
    fleet.hold(container("c1", "g0"))
    fleet.drain("n")

    assert fleet.capacity == HeldResources(vram=2 * H100.memory, compute=2_000_000, slots=3)
    assert not set(fleet.holdings.tenants())
    check_integrity(fleet)
    fleet.drain("n", draining=False)
    assert set(fleet.holdings.tenants()) == {"acme"}


def test_an_ask_takes_its_first_choice() -> None:
    """What no device serves takes nothing."""
    fleet = Fleet([node()])

    def asked(ask: Ask) -> HeldResources:
        return resources_asked(fleet.offers(ask))

    assert asked(Ask(gpu=(GpuAsk("H100", 2), GpuAsk("CPU")))) == HeldResources(vram=2 * H100.memory, compute=2_000_000)
    assert asked(Ask()) == HeldResources(slots=1)
    assert asked(Ask(gpu=(GpuAsk("T4"),))) == NOTHING_HELD
