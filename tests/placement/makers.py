"""Small makers of what placement tests are about: nodes, asks, and fleets that hypothesis draws."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

from hypothesis import strategies as st

from pilotlight_core.model.messages.node_messages import HostShare, SliceKind
from pilotlight_core.model.placing import Over, Purchase, Spread
from pilotlight_core.model.spec import Isolation
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.asks.curves import Curves, ThroughputPoint
from pilotlight_placement.asks.resident_ask import ResidentAsk
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.catalogue import standard
from pilotlight_placement.hardware.geometry import layouts
from pilotlight_placement.hardware.node import (
    BlankPlace,
    Domain,
    Gpu,
    Node,
    NodeAbilities,
    ParkedPlace,
    PlacedContainer,
    Slice,
    Slot,
    in_memory,
)
from pilotlight_placement.plan.draft import DesiredFunction, PlanLimits
from pilotlight_placement.plan.plan import Plan
from pilotlight_placement.search.decision_record import Placement
from pilotlight_placement.search.place import place

KINDS = ("H100-80GB", "H100-80GB", "H100-80GB", "A30", "T4")
LAYOUTS = {
    kind: list(islice(layouts(cut, ("1g", "2g", "4g")), 40)) for kind in KINDS if (cut := standard()[kind].family)
}
"""Instances that may exist on a device of a kind."""
OFTEN_NOT = (False, False, True)
FUNCTIONS = ("f", "g", "h")
ABLE = NodeAbilities(bases=("default", "torch"), features=("limits",), shm=8 * GIB, scratch=8 * GIB, pids=4096)
"""What a node of this release can do."""


def gpu(name: str, kind: str = "H100-80GB", **more: Any) -> Gpu:
    return Gpu(id=name, device=standard()[kind], **more)


def cpu(number: int) -> Slot:
    return Slot(id=f"cpu-{number}", kind=SliceKind.CPU, type="CPU", memory=8192, ppm=250_000)


def node(name: str, *gpus: Gpu, zone: str = "", region: str = "local", spot: bool = False, **more: Any) -> Node:
    return Node(name=name, domain=Domain(region=region, zone=zone, spot=spot), gpus=gpus, **more)


def host(cores: float, gib: float) -> HostShare:
    """What a node has to promise, or a container is promised."""
    return HostShare(cpu_millis=round(cores * 1000), memory=int(gib * GIB))


def ask(*types: str, gib: float = 0, **more: Any) -> Ask:
    """`ask("H100", "T4:2", gib=20)`."""
    wanted = tuple(GpuAsk(name.split(":")[0], int([*name.split(":"), "1"][1])) for name in types)
    return Ask(gpu=wanted, vram=int(gib * GIB), **more)


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """The usual value two times out of three: wishes that are all there at once leave no place to compare."""
    return st.sampled_from((usual,) * 2 * len(others) + others)


V, W = ResidentAsk("v", 2**26), ResidentAsk("w", 2**32)
RESIDENT: tuple[set[str], ...] = (set(), {"w"}, {"w", in_memory("w")}, {"v"}, {"w", "v"}, {"w", "v", in_memory("v")})
"""Of a node: those on its disk, and which of them are in its memory."""


@st.composite
def nodes(draw: st.DrawFn, name: str = "n") -> Node:
    """A node with devices of one kind, each in one of the modes, perhaps with CPU slots."""
    gpus: list[Gpu] = []
    kind = draw(st.sampled_from(KINDS))
    for number in range(draw(st.integers(0, 4))):
        mig = standard()[kind].family is not None and draw(st.booleans())
        shareable = not mig and draw(st.booleans())
        instances = draw(st.sampled_from(LAYOUTS[kind])) if mig else ()
        link = draw(st.sampled_from("ab"))
        ill = draw(mostly("", "", "it is lost"))
        made = gpu(f"{name}-gpu{number}", kind, mig=mig, shareable=shareable, link=link, instances=instances)
        gpus.append(replace(made, withdrawn=ill))
    slots = tuple(cpu(number) for number in range(draw(st.integers(0, 2))))
    places = [place for made in gpus for place in whole_places(made)]
    return Node(
        name=name,
        domain=Domain(
            zone=draw(st.sampled_from(("x", "y"))),
            spot=draw(st.sampled_from(OFTEN_NOT)),
            abilities=draw(mostly(ABLE, NodeAbilities())),
        ),
        gpus=tuple(gpus),
        slots=slots,
        blanks=frozenset(draw(blank_places(places))),
        parked=tuple(sorted(draw(parked_places(name, places)))),
        host=draw(mostly(None, host(2, 4), host(8, 64), host(1, 12))),
        draining=draw(st.sampled_from(OFTEN_NOT)),
        resident=frozenset(draw(st.sampled_from(RESIDENT))),
    )


def whole_places(made: Gpu) -> list[tuple[str, str, int]]:
    """The instances of a device, or all of it."""
    return [(made.id, i.profile, i.start) for i in made.instances] if made.mig else [(made.id, "", 0)]


@st.composite
def blank_places(draw: st.DrawFn, places: list[tuple[str, str, int]]) -> list[BlankPlace]:
    """Blanks on some of the places, and perhaps on CPU slots."""
    some = draw(st.lists(st.sampled_from([("", "", 0), *places]), max_size=3))
    return [BlankPlace(part, draw(mostly("default", "torch")), profile, start) for part, profile, start in some]


@st.composite
def parked_places(draw: st.DrawFn, node: str, places: list[tuple[str, str, int]]) -> list[ParkedPlace]:
    """What is parked and returns to some of the places."""
    has_some = places and draw(st.sampled_from(OFTEN_NOT))
    some = draw(st.lists(st.sampled_from(places), max_size=3)) if has_some else []
    return [
        ParkedPlace(f"{node}-parked{number}", draw(st.sampled_from(("t", "u"))), part, profile, start)
        for number, (part, profile, start) in enumerate(some)
    ]


@st.composite
def some_nodes(draw: st.DrawFn, most: int = 6) -> list[Node]:
    """A few nodes with different names."""
    return [draw(nodes(f"n{number}")) for number in range(draw(st.integers(1, most)))]


@st.composite
def asks(draw: st.DrawFn) -> Ask:
    """An ask with any mixture of wishes, most of them modest."""
    types = draw(mostly(("ANY",), ("H100", "ANY"), ("H100",), ("ANY", "T4"), (), ("H100:2", "ANY:2"), ("A30", "H100")))
    most = draw(mostly(None, 1, 2))
    return ask(
        *types,
        gib=draw(st.sampled_from((0, 3, 3, 5, 8, 14, 18, 40, 90))),
        function=draw(st.sampled_from(FUNCTIONS)),
        tenant=draw(st.sampled_from(("t", "u"))),
        memory=draw(mostly(0, 2 * GIB, 8 * GIB)),
        cpu=draw(mostly(0, 100, 1500)),
        isolation=draw(mostly(Isolation.SHARED, Isolation.MIG, Isolation.EXCLUSIVE)),
        by_cost=draw(st.booleans()),
        spread=draw(mostly(None, Spread(over=Over.NODE, most=most), Spread(over=Over.ZONE, most=most))),
        avoid=draw(mostly((), ("f",), ("g",))),
        resident=draw(mostly((), (W,), (V,), (V, W))),
        purchase=draw(mostly(Purchase.ANY, Purchase.SPOT, Purchase.ON_DEMAND)),
        zones=draw(mostly((), ("x",))),
        neighbours=draw(st.booleans()),
        media=draw(st.sampled_from(OFTEN_NOT)),
        curves=draw(st.none() | curves()),
        slo_ms=draw(mostly(None, 50.0)),
        base=draw(mostly("default", "torch")),
        needs=draw(mostly((), ("limits",))),
        pids=draw(mostly(0, 8192)),
        slice=draw(mostly("", "", "H100-80GB/3g", "T4/whole", "CPU/slot", "H100-80GB/share:38")),
    )


@st.composite
def curves(draw: st.DrawFn) -> Curves:
    """What is known of a function's speed on some slices: fast or slow, surely or not."""
    keys = [("H100-80GB", "3g"), ("H100-80GB", "1g"), ("H100-80GB", "whole"), ("T4", "whole"), ("A30", "2g")]
    keys += [("H100-80GB", "share:38"), ("CPU", "slot")]
    points = st.builds(
        ThroughputPoint,
        batch=st.sampled_from((1, 8)),
        throughput=st.sampled_from((10.0, 40.0, 300.0)),
        p95_ms=st.sampled_from((20.0, 80.0)),
        hard=st.booleans(),
    )
    known = draw(st.dictionaries(st.sampled_from(keys), st.lists(points, min_size=1, max_size=2), max_size=5))
    return Curves({key: tuple(made) for key, made in known.items()})


CHURN = st.lists(st.tuples(asks(), st.integers(0, 3)), min_size=1, max_size=16)


def fill(fleet: Fleet, steps: list[tuple[Ask, int]]) -> None:
    """Place the asks one after another, and now and then release the oldest container."""
    for number, (wanted, luck) in enumerate(steps):
        found = place(fleet, wanted)
        if isinstance(found, Placement):
            fleet.hold(found.held(f"c{number:03}"))
        if luck == 0 and fleet.held:
            fleet.release(min(fleet.held))


QUIET = PlanLimits(empties=0, switches=0)


def want(name: str, count: int, wanted: Ask, **more: object) -> DesiredFunction:
    """A function by name that should have `count` containers."""
    return DesiredFunction(ask=replace(wanted, function=name), count=count, **more)  # type: ignore[arg-type]


def instance(
    container: str, profile: str, start: int, gpu_id: str = "g", function: str = "f", node: str = "n"
) -> PlacedContainer:
    """A container on a MIG instance."""
    slice_ = Slice(
        node=node, kind=SliceKind.MIG, type="H100-80GB", ids=(gpu_id,), memory=9984, profile=profile, start=start
    )
    return PlacedContainer(container=container, slice=slice_, function=function, tenant="t")


def kinds(made: Plan) -> list[str]:
    """The commands of a plan by their names."""
    return [type(command.command).__name__ for command in made.commands]


def chosen(fleet: Fleet, wanted: Ask) -> Slice:
    """Where an ask is placed, which has a place."""
    found = place(fleet, wanted)
    assert isinstance(found, Placement)
    return found.slice
