"""From what was observed to what to do: one pass over all versions. Pure and level-triggered.

Acting on the result twice does no harm: agents know container ids and epochs, and what a lost command would have
changed is still missing at the next tick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pilotlight_autoscaler.policy import (
    FLOOR_PATIENCE_S,
    MIN_RESIDENCY_S,
    VersionView,
    idle_ones,
    may_give_way,
    to_drain,
    wanted,
)
from pilotlight_autoscaler.world import LIVE, Failures, World
from pilotlight_core.model.messages import Bind, ContainerReport, Drain, Shortage, Stop
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.ask import Ask
from pilotlight_placement.fleet import Fleet
from pilotlight_placement.histogram import Shape
from pilotlight_placement.node import Held
from pilotlight_placement.place import place
from pilotlight_placement.record import NoFit, Placement

DRAIN_MARGIN_S = 5.0
"""Beyond the function's timeout: no call may still run then."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A command and the node it goes to."""

    node: str
    command: Bind | Drain | Stop


@dataclass(kw_only=True)
class Decision:
    """What one pass decided, and why (for people)."""

    commands: list[Sent] = field(default_factory=list)
    shortages: list[Shortage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


ROOM_S = 2.0
"""An idle container that was told to go has gone within this; until then no other is asked to make room."""


def views(
    world: World, versions: Mapping[str, VersionRecord], deployed: Iterable[str], at: float
) -> dict[str, VersionView]:
    """Every version that is deployed, wanted or running, as the policy sees it."""
    current = set(deployed)
    containers: dict[str, list[ContainerReport]] = {}
    for _, container in world.containers(at):
        if container.state in LIVE and container.id not in world.draining:
            containers.setdefault(container.version, []).append(container)
    pending: dict[str, int] = {}
    for item in world.pending.values():
        pending[item.bind.version] = pending.get(item.bind.version, 0) + 1
    return {
        version: VersionView(
            spec=record.spec,
            deployed=version in current,
            demand=world.demand(version, at),
            containers=tuple(containers.get(version, ())),
            pending=pending.get(version, 0),
        )
        for version, record in versions.items()
    }


def function_of(record: VersionRecord) -> str:
    """`tenant:app.function`: what containers are spread and kept apart by."""
    return f"{record.tenant}:{record.app}.{record.function}"


class Pass:
    """One pass of decisions over a world."""

    def __init__(
        self,
        world: World,
        versions: Mapping[str, VersionRecord],
        deployed: Iterable[str],
        *,
        epoch: int,
        new_id: Callable[[VersionRecord], str],
        at: float,
    ) -> None:
        self._world = world
        self._versions = versions
        self._epoch = epoch
        self._new_id = new_id
        self._at = at
        self._views = views(world, versions, deployed, at)
        self._where = {container.id: node for node, container in world.containers(at)}
        self._fleet: Fleet = world.fleet(at)
        self._fleet.follow(world.asked)
        self._leaving: set[str] = set()
        self.decision = Decision()

    def run(self, only: str | None = None) -> Decision:
        """Decide for all versions, or for the one that just came to need something."""
        if only is None:
            for version in self._views:
                self._shrink(version)
        for version in self._in_order(only):
            self._grow(version)
        return self.decision

    def _in_order(self, only: str | None) -> list[str]:
        if only is not None:
            return [only] if only in self._views else []
        waiting = {v: view.demand.oldest_ms if view.demand else 0.0 for v, view in self._views.items()}
        return sorted(self._views, key=lambda version: (-waiting[version], version))

    def _shrink(self, version: str) -> None:
        for container in to_drain(self._views[version]):
            self._drain(container.id, self._versions[version], f"idle for {container.idle_s:.0f} s")

    def _grow(self, version: str) -> None:
        view, record = self._views[version], self._versions[version]
        missing = wanted(view) - view.size
        if missing <= 0 or self._world.failures.get(version, Failures()).until > self._at:
            return
        for _ in range(missing):
            found = place(self._fleet, Ask.of(record.spec, function=function_of(record), tenant=record.tenant))
            if isinstance(found, NoFit):
                self._world.decisions.add(found)
                self._no_fit(record, view, found)
                return
            self._bind(record, found)

    def _bind(self, record: VersionRecord, found: Placement) -> None:
        container = self._new_id(record)
        self._world.decisions.add(found, container)
        if (shape := Shape.of(found.record.ask)) is not None:
            self._world.asked.observe(shape, self._at)
        self._fleet.hold(
            Held(container=container, slice=found.slice, function=function_of(record), tenant=record.tenant)
        )
        bind = Bind(
            epoch=self._epoch,
            container=container,
            version=record.id,
            tenant=record.tenant,
            manifest_sha256=record.manifest_sha256,
            function=function_of(record),
            slice=found.slice.id,
        )
        self.decision.commands.append(Sent(node=found.node, command=bind))
        self.decision.notes.append(f"{record.ref}: {bind.container} on {found.node}/{found.slice.id}")

    def _no_fit(self, record: VersionRecord, view: VersionView, found: NoFit) -> None:
        self.decision.shortages.append(
            Shortage(version=record.id, epoch=self._epoch, reason=found.reason, never=found.never)
        )
        waited_for = view.demand is not None and bool(view.demand.queued)
        if found.never or not (waited_for or view.size < view.floor):
            return
        if any(self._at - since < ROOM_S for since in self._world.draining.values()):
            return  # room is already being made
        patience = MIN_RESIDENCY_S if waited_for else FLOOR_PATIENCE_S
        others = {version: view for version, view in self._views.items() if version != record.id}
        victims = [(c, version) for version, other in others.items() for c in may_give_way(other, patience)]
        if not victims and waited_for:
            # A floor is a promise out of one's own share: nobody keeps others from running at all with it.
            greedy = self._over_share(record.tenant)
            victims = [(c, v) for v, o in others.items() if self._versions[v].tenant in greedy for c in idle_ones(o)]
        victims = [(container, version) for container, version in victims if container.id not in self._leaving]
        if victims:
            container, version = max(victims, key=lambda pair: (pair[0].idle_s, pair[0].id))
            self._drain(container.id, self._versions[version], f"gives way to {record.ref}")

    def _over_share(self, waiting: str) -> set[str]:
        """The tenants with more containers than an even share of the slices, while `waiting` has none of its own."""
        held: dict[str, int] = {waiting: 0}
        for version, view in self._views.items():
            tenant = self._versions[version].tenant
            held[tenant] = held.get(tenant, 0) + view.size
        if held[waiting]:
            return set()
        share = self._fleet.size / len(held)
        return {tenant for tenant, count in held.items() if count > share}

    def _drain(self, container: str, record: VersionRecord, reason: str) -> None:
        self._leaving.add(container)
        within_ms = (record.spec.timeout + DRAIN_MARGIN_S) * 1000.0
        command = Drain(epoch=self._epoch, container=container, within_ms=within_ms, reason=reason)
        self.decision.commands.append(Sent(node=self._where[container], command=command))
        self.decision.notes.append(f"{record.ref}: {container} drains: {reason}")
