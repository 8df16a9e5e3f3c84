"""Versions as the scaling policy sees them, from what the world has observed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from pilotlight_autoscaler.observations.world import LIVE, World
from pilotlight_autoscaler.policy.function_view import FunctionView
from pilotlight_autoscaler.policy.scaling_policy import VersionSpeed, VersionView, wanted_by_level
from pilotlight_core.model.api.curve_api import TARGET_UTILISATION
from pilotlight_core.model.messages.node_messages import Bind, ContainerReport, ContainerState
from pilotlight_core.model.scaling.scale_bounds import NO_BOUNDS, ScaleBounds
from pilotlight_core.model.spec import FunctionSpec, VersionRecord
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.curves import Curves

NO_FLOORS: Mapping[str, int] = MappingProxyType({})


def views(
    world: World,
    versions: Mapping[str, VersionRecord],
    deployed: Iterable[str],
    at: float,
    speed: Callable[[str, Sequence[ContainerReport]], VersionSpeed | None] = lambda _, __: None,
    *,
    shut_down: Container[str] = (),
    floors: Mapping[str, int] = NO_FLOORS,
    bounds: Mapping[str, ScaleBounds] = NO_BOUNDS,
) -> dict[str, VersionView]:
    """Every deployed, demanded or running version as the scaling policy sees it.

    `bounds` has the versions that may be held to something else than their spec, `floors` those with a floor.
    """
    current = set(deployed)
    containers: dict[str, list[ContainerReport]] = {}
    leaving: Counter[str] = Counter()
    for node, container in world.containers(at):
        # Containers of a draining node are left alone.
        if container.state in LIVE and container.id not in world.draining and not world.nodes[node].draining:
            containers.setdefault(container.version, []).append(container)
        elif container.state is not ContainerState.GONE:
            leaving[container.version] += 1
    pending: dict[str, int] = {}
    for bind in coming(world):
        pending[bind.version] = pending.get(bind.version, 0) + 1
    return {
        version: VersionView(
            spec=record.spec,
            deployed=version in current,
            is_shut_down=version in shut_down,
            floor_most=floors.get(version),
            bounds=bounds.get(version),
            demand=world.demand(version, at),
            home_is_silent=world.home_is_silent(version, at),
            containers=tuple(containers.get(version, ())),
            pending=pending.get(version, 0),
            leaving=leaving[version],
            rate=world.rate(version, at),
            speed=speed(version, containers.get(version, ())),
        )
        for version, record in versions.items()
    }


def by_function(views_: Mapping[str, VersionView], versions: Mapping[str, VersionRecord]) -> dict[str, FunctionView]:
    """The versions of each function, by its name."""
    found: dict[str, dict[str, VersionView]] = {}
    for version, view in views_.items():
        found.setdefault(function_of(versions[version]), {})[version] = view
    return {name: FunctionView(name=name, versions=of_it) for name, of_it in found.items()}


def coming(world: World) -> Iterator[Bind]:
    """The starts under way that no report shows yet."""
    yield from (item.bind for item in world.pending.values())
    yield from (bind for _, bind in world.executions.starts())


def holders(
    world: World, versions: Mapping[str, VersionRecord], at: float
) -> Iterator[tuple[str, FunctionSpec | None]]:
    """The tenant and spec of each container that holds a slice or is about to."""
    held = [(each.tenant, each.version) for _, each in world.containers(at) if each.state is not ContainerState.GONE]
    for tenant, version in (*held, *((bind.tenant, bind.version) for bind in coming(world))):
        record = versions.get(version)
        yield tenant, record.spec if record is not None else None


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
        record.spec, function=function, tenant=record.tenant, curves=curves, base=record.base, needs=record.needs
    )
