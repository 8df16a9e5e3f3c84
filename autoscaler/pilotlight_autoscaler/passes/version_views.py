"""Versions as the scaling policy sees them, from what the world has observed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from pilotlight_autoscaler.observations.container_index import LIVE
from pilotlight_autoscaler.observations.world import NODE_LOST_S, World
from pilotlight_autoscaler.policy.function_view import FunctionView, PlannedCalls
from pilotlight_autoscaler.policy.scaling_policy import VersionSpeed, VersionView, wanted_by_level
from pilotlight_core.model.api.curve_api import TARGET_UTILISATION
from pilotlight_core.model.messages.node_messages import Bind, ContainerReport, ContainerState
from pilotlight_core.model.rollouts.capacity import ArmCapacity
from pilotlight_core.model.scaling.scale_bounds import NO_BOUNDS, ScaleBounds
from pilotlight_core.model.spec import FunctionSpec, VersionRecord
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.curves import Curves

NO_FLOORS: Mapping[str, int] = MappingProxyType({})
NO_ARMS: Mapping[str, ArmCapacity] = MappingProxyType({})
Speed = Callable[[str, Sequence[ContainerReport]], VersionSpeed | None]


class VersionViews(Mapping[str, VersionView]):
    """Versions as the scaling policy sees them; each is looked at when it is asked for."""

    def __init__(
        self,
        world: World,
        versions: Mapping[str, VersionRecord],
        deployed: Container[str],
        at: float,
        speed: Speed = lambda _, __: None,
        *,
        shut_down: Container[str] = (),
        floors: Mapping[str, int] = NO_FLOORS,
        bounds: Mapping[str, ScaleBounds] = NO_BOUNDS,
        unfunded: Callable[[VersionRecord], str] = lambda _: "",
        arms: Mapping[str, ArmCapacity] = NO_ARMS,
    ) -> None:
        """`unfunded` says which budget is used up, `arms` has the sides of rollouts that run.

        `bounds` has the versions that may be held to something else than their spec, `floors` those with a floor.
        """
        self._arms = arms
        self._bounds = bounds
        self._unfunded = unfunded
        self._world = world
        self._versions = versions
        self._deployed = deployed
        self._at = at
        self._speed = speed
        self._shut_down = shut_down
        self._floors = floors
        self._made: dict[str, VersionView] = {}
        self._pending: Counter[str] | None = None
        """Starts under way, by version."""

    def __getitem__(self, version: str) -> VersionView:
        view = self._made.get(version)
        if view is None:
            view = self._made[version] = self._view_of(version, self._versions[version].spec)
        return view

    def __contains__(self, version: object) -> bool:
        return version in self._versions

    def __iter__(self) -> Iterator[str]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)

    def _view_of(self, version: str, spec: FunctionSpec) -> VersionView:
        world, at = self._world, self._at
        if self._pending is None:
            self._pending = Counter([version for version, _ in _unseen(world)])
        there, leaving, parked = present_containers(world, version, at)
        return VersionView(
            spec=spec,
            deployed=version in self._deployed,
            is_shut_down=version in self._shut_down,
            unfunded=self._unfunded(self._versions[version]),
            floor_most=self._floors.get(version),
            bounds=self._bounds.get(version),
            arm=self._arms.get(version),
            demand=world.demand(version, at),
            home_is_silent=world.home_is_silent(version, at),
            containers=tuple(there),
            pending=self._pending[version],
            leaving=leaving,
            parked=tuple(parked),
            rate=world.rate(version, at),
            speed=self._speed(version, there),
        )


class FunctionViews(Mapping[str, FunctionView]):
    """Functions with all of their versions; each is looked at when it is asked for."""

    def __init__(
        self,
        views: Mapping[str, VersionView],
        versions_of: Mapping[str, Collection[str]],
        planned: Callable[[str], PlannedCalls | None],
    ) -> None:
        """`versions_of` has the versions of each function, `planned` says what its jobs will ask for."""
        self._planned = planned
        self._views = views
        self._versions_of = versions_of

    def __getitem__(self, function: str) -> FunctionView:
        versions = {version: self._views[version] for version in self._versions_of[function]}
        return FunctionView(name=function, versions=versions, planned=self._planned(function))

    def versions_of(self, function: str) -> Collection[str]:
        """The known versions of a function."""
        return self._versions_of.get(function, ())

    def __iter__(self) -> Iterator[str]:
        return iter(self._versions_of)

    def __len__(self) -> int:
        return len(self._versions_of)


def present_containers(
    world: World, version: str, at: float
) -> tuple[list[ContainerReport], int, list[ContainerReport]]:
    """The containers of a version that stay, how many drain or are replaced, and those that are parked.

    One that is told to serve again stays, as if it had just begun to start.
    """
    there: list[ContainerReport] = []
    parked: list[ContainerReport] = []
    leaving = 0
    seen, draining, replacing, nodes = world.seen, world.draining, world.replacing, world.nodes
    for found in world.index.of(version):
        node, container = found.node, found.report
        if at - seen.get(node, at) > NODE_LOST_S:
            continue
        goes = container.id in draining or container.id in replacing
        if container.state is ContainerState.PARKED:
            if container.id in world.unparking:
                there.append(msgspec.structs.replace(container, age_s=0.0))
            elif not goes and not nodes[node].draining:
                parked.append(container)
            continue
        if container.id in world.parking and not goes and not nodes[node].draining:
            parked.append(container)
            continue
        # Containers of a draining node are left alone.
        if container.state in LIVE and not goes and not nodes[node].draining:
            there.append(container)
        else:
            leaving += 1
    return there, leaving, parked


def by_function(versions: Mapping[str, VersionRecord]) -> dict[str, list[str]]:
    """The versions of each function, by its name."""
    found: dict[str, list[str]] = {}
    for version, record in versions.items():
        found.setdefault(function_of(record), []).append(version)
    return found


def coming(world: World) -> Iterator[Bind]:
    """The starts under way that no report shows yet."""
    yield from (item.bind for item in world.pending.values())
    yield from (bind for _, bind in world.executions.starts())


def _unseen(world: World) -> Iterator[tuple[str, str]]:
    """The version and tenant of each container that no report shows: starts under way, and what is not heard of yet."""
    yield from ((bind.version, bind.tenant) for bind in coming(world))
    yield from ((bound.version, bound.tenant) for bound in world.unheard)


def held_by(
    world: World, versions: Mapping[str, VersionRecord], tenant: str
) -> Iterator[tuple[FunctionSpec | None, int]]:
    """The specs of a tenant's containers that hold a slice or are about to, and how many there are."""
    for version in world.index.of_tenant(tenant):
        record = versions.get(version)
        count = sum(
            each.report.state is not ContainerState.PARKED or each.report.id in world.unparking
            for each in world.index.of(version)
        )
        yield record.spec if record is not None else None, count
    for version, whose in _unseen(world):
        if whose == tenant:
            record = versions.get(version)
            yield record.spec if record is not None else None, 1


def function_of(record: VersionRecord) -> str:
    """`tenant:app.function`, the key of spread and avoidance."""
    return f"{record.tenant}:{record.app}.{record.function}"


def explain_level(record: VersionRecord, view: VersionView) -> str:
    speeds = ", ".join(f"{speed:.3g}" for speed in view.speed.there) if view.speed else ""
    there = f"; those that are there do {speeds} per second" if speeds else ""
    return (
        f"{record.ref}: {wanted_by_level(view)} containers carry {view.rate:.3g} calls per second within "
        f"{view.spec.slo.p95_ms:g} ms, used to {TARGET_UTILISATION:.0%}{there}"
    )


def ask_of(record: VersionRecord, curves: Curves | None = None) -> Ask:
    """The ask of a version's container, with its known curves."""
    function = function_of(record)
    return Ask.of(
        record.spec, function=function, tenant=record.tenant, curves=curves, base=record.base, needs=record.needs,
        artifacts=record.artifacts, environment=record.environment,
    )  # fmt: skip
