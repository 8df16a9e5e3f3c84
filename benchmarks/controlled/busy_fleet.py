"""A fleet in which functions are busy: which containers run where, as placement itself has placed them. Seeded."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from benchmarks.placement_scale import GPUS_PER_NODE, make_nodes
from pilotlight_core.model.placing import Placing
from pilotlight_core.model.spec import AppRecord, FunctionSpec, Isolation, MethodSpec, VersionRecord
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Node, PlacedContainer
from pilotlight_placement.search.decision_record import NoFit
from pilotlight_placement.search.place import place

SCARCE = "B200"
"""The type that is in use everywhere, so that whoever wants it is blocked."""
SCARCE_EACH = 20
"""One busy function in so many wants it."""
TENANTS, APPS = 100, 10
"""Tenants, and apps of each."""
BLOCKED = "blocked"
"""The tenant whose functions have no place."""
TYPES = (("ANY",), ("ANY",), ("H100", "A100", "L40S"), ("A100", "H100"), ("H200", "H100"))
SLOTS = 4
IDLE_S = 600.0
"""For so long idle containers of busy functions stay."""
SHORT_IDLE_S = 2.0
"""For so long containers stay that an edge has started."""


@dataclass(frozen=True, kw_only=True)
class FleetSize:
    gpus: int
    containers: int
    busy: int
    """Functions with containers."""
    deployed: int
    """All functions, but for those of the blocked tenant."""
    blocked: int


@dataclass(frozen=True, kw_only=True)
class BusyFleet:
    nodes: list[Node]
    held: list[tuple[PlacedContainer, VersionRecord]]
    busy: list[VersionRecord]
    idle: list[VersionRecord]
    """Deployed functions without containers."""
    blocked: list[VersionRecord]

    @property
    def versions(self) -> list[VersionRecord]:
        return [*self.busy, *self.idle, *self.blocked]

    def apps(self) -> Iterator[AppRecord]:
        """The record of each app."""
        functions: dict[tuple[str, str], dict[str, str]] = {}
        for version in self.versions:
            functions.setdefault((version.tenant, version.app), {})[version.function] = version.id
        for (tenant, app), ids in functions.items():
            kept: dict[str, tuple[str, ...]] = {name: (version,) for name, version in ids.items()}
            yield AppRecord(tenant=tenant, app=app, revision=1, functions=ids, versions=kept)


def make_busy_fleet(size: FleetSize, rng: random.Random) -> BusyFleet:
    """Place containers of the busy functions in turn, after every device of the scarce type is given away."""
    nodes = [_named(node) for node in make_nodes(size.gpus, rng)]
    busy = [_version(number, rng, scarce=number % SCARCE_EACH == 0) for number in range(size.busy)]
    idle = [_version(number, rng, window_s=SHORT_IDLE_S) for number in range(size.busy, size.deployed)]
    blocked = [_blocked(number) for number in range(size.blocked)]
    fleet = Fleet(nodes)
    held = _fill(fleet, busy[::SCARCE_EACH], len(nodes) * GPUS_PER_NODE)
    held += _fill(fleet, busy, size.containers - len(held))
    return BusyFleet(nodes=nodes, held=held, busy=busy, idle=idle, blocked=blocked)


def _fill(fleet: Fleet, versions: list[VersionRecord], count: int) -> list[tuple[PlacedContainer, VersionRecord]]:
    """Start containers of the versions in turn, until there are so many or none has a place."""
    held: list[tuple[PlacedContainer, VersionRecord]] = []
    while versions and len(held) < count:
        left = []
        for version in versions[: count - len(held)]:
            found = place(fleet, _ask_of(version))
            if not isinstance(found, NoFit):
                one = found.held(f"ctr_{version.function}_0_{len(fleet.held)}")
                fleet.hold(one)
                held.append((one, version))
                left.append(version)
        versions = left
    return held


def _ask_of(version: VersionRecord) -> Ask:
    function = f"{version.tenant}:{version.app}.{version.function}"
    return Ask.of(version.spec, function=function, tenant=version.tenant, base=version.base, needs=version.needs)


def _named(node: Node) -> Node:
    """As an agent reports it, with the scarce type outside of MIG mode."""
    gpus = tuple(replace(gpu, mig=gpu.mig and gpu.device.name != SCARCE, link="") for gpu in node.gpus)
    return replace(node, gpus=gpus, resident=frozenset(), domain=replace(node.domain, region="local"))


def _version(number: int, rng: random.Random, *, scarce: bool = False, window_s: float = IDLE_S) -> VersionRecord:
    types = (SCARCE,) if scarce else rng.choice(TYPES)
    return _record(
        number,
        f"t{number % TENANTS}",
        f"app{number // TENANTS % APPS}",
        gpu=tuple(GpuAsk(name) for name in types),
        vram=rng.choice((2, 4, 8, 8, 12, 16, 20)) * GIB,
        memory=rng.choice((4, 8, 16)) * GIB,
        cpu=rng.choice((0.5, 1.0, 2.0)),
        isolation=Isolation.EXCLUSIVE if scarce else rng.choice((Isolation.SHARED, Isolation.SHARED, Isolation.MIG)),
        placing=Placing(by_cost=rng.random() < 0.7, neighbours=rng.random() < 0.3),
        scaledown_window=window_s,
        max_containers=1_000,
    )


def _blocked(number: int) -> VersionRecord:
    """Each asks for something else, so that no answer to one is an answer to another."""
    gpu, memory = (GpuAsk(SCARCE),), 4 * GIB + number * 2**20
    return _record(number, BLOCKED, "app0", gpu=gpu, vram=16 * GIB, memory=memory, isolation=Isolation.EXCLUSIVE)


def _record(number: int, tenant: str, app: str, **options: object) -> VersionRecord:
    name = f"f{number}"
    spec = FunctionSpec(
        name=name, module="app", qualname=name, methods=(MethodSpec(name="", attribute=name),), max_inputs=SLOTS,
        **options,  # type: ignore[arg-type]  # a benchmark's functions differ in anything
    )  # fmt: skip
    return VersionRecord(
        id=f"ver_{tenant}_{name}", tenant=tenant, app=app, function=name, number=1, manifest_sha256="0" * 64,
        spec=spec, bundle_bytes=1, created_at=0.0,
    )  # fmt: skip
