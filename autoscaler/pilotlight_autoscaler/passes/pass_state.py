"""What one pass knows, and what it has decided so far: the fleet, the versions, and who is leaving."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from pilotlight_autoscaler.observations.wish_log import WishChange
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decision import AddressedCommand, Decision
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_autoscaler.passes.version_speed import speed_of
from pilotlight_autoscaler.passes.version_views import (
    FunctionViews,
    VersionViews,
    ask_of,
    by_function,
    function_of,
)
from pilotlight_autoscaler.policy.desired import more_needs
from pilotlight_autoscaler.policy.expected_room import next_idle_s
from pilotlight_autoscaler.policy.preemption import IdleContainers
from pilotlight_autoscaler.policy.scaling_policy import (
    FIRST_LOAD_S,
    MIN_RESIDENCY_S,
    VersionSpeed,
    VersionView,
    is_idle,
)
from pilotlight_autoscaler.policy.warmth import UNKNOWN_CHANCE, can_be_parked, tier_of
from pilotlight_autoscaler.policy.wish import Warmth, Wish
from pilotlight_core.model.messages.node_messages import ContainerReport, Drain, Park
from pilotlight_core.model.scaling.warm_worth import worth
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet

DRAIN_MARGIN_S = 5.0
"""Beyond the function's timeout, after which no call can still run."""


class PassState:
    def __init__(self, world: World, given: PassInput) -> None:
        self.world = world
        self.given = given
        self.at = given.at
        self.versions = given.versions
        self.decision = Decision()
        self.leaving: set[str] = set(world.executions.containers())
        """Containers that this pass, or a plan under way, ends."""
        world.observe_versions(given.versions, given.renewed)
        self._fleet: Fleet | None = None
        self.views: Mapping[str, VersionView] = VersionViews(
            world,
            given.versions,
            given.deployed,
            given.at,
            self._speed,
            shut_down=given.shut_down,
            floors=given.floors,
            bounds=given.bounds,
            unfunded=given.unfunded,
            arms=given.arms,
        )
        of_each = given.versions_of if given.versions_of is not None else by_function(given.versions)
        self.functions: FunctionViews = FunctionViews(self.views, of_each, partial(world.planned.of, at=given.at))
        self._wishes: dict[str, Wish] = {}
        self._wishes_for: dict[str, Wish] = {}
        """By version."""
        self.idle = IdleContainers(
            views=self.views, idle=world.index.idle, idle_on=world.index.idle_on, worth=self._worth
        )
        self.room_s: dict[str, float] = {}
        """When a place is expected that others leave for a version."""
        self._next_idle_s: dict[bool, float] = {}

    @property
    def fleet(self) -> Fleet:
        """The fleet as it is reported; most passes look at versions alone, and need none."""
        if self._fleet is None:
            self._fleet = self.world.fleet(self.at)
        return self._fleet

    def decided(self, only: Collection[str] | None) -> list[str]:
        """The versions that are decided on: those with a new demand, or of a pass over all those whose turn it is."""
        some = only if only is not None else self.given.decided
        return list(self.versions) if some is None else [version for version in some if version in self.versions]

    def version_of(self, container: str) -> str:
        """The version of a container on a node.

        Raises:
            KeyError: no node reports it.
        """
        found = self.world.index.get(container)
        if found is None:
            raise KeyError(container)
        return found.version

    def served_by(self, container: str) -> VersionRecord | None:
        """The version whose calls a container may have; None: it is parked, or its node says what cannot be."""
        index = self.world.index
        return None if index.is_parked(container) else self.versions.get(index.version_of(container))

    def _speed(self, version: str, containers: Sequence[ContainerReport]) -> VersionSpeed | None:
        record, curves = self.versions[version], self.given.curves.get(version)
        return speed_of(record, curves, containers, self.fleet) if curves is not None else None

    def wish(self, function: str) -> Wish:
        """What a function should have, by what is known of it now."""
        if function not in self._wishes:
            view, wall = self.functions[function], self.given.wall
            wish = self.world.scaling.wish(view, wall)
            change = WishChange(at=wall, wish=wish, there=view.size, more_needs=more_needs(view, wish))
            self.world.wishes.add(function, change)
            self._wishes[function] = wish
        return self._wishes[function]

    def wish_for(self, version: str) -> Wish:
        """The same of a version's function."""
        if (known := self._wishes_for.get(version)) is None:
            known = self._wishes_for[version] = self.wish(function_of(self.versions[version]))
        return known

    def wanted(self, version: str) -> int:
        """How many containers a version should have."""
        return self.wish_for(version).by_version[version]

    def missing(self, version: str) -> int:
        """How many it should have more; below 0 how many less."""
        return self.wanted(version) - self.views[version].size

    def ask(self, version: str) -> Ask:
        return ask_of(self.versions[version], self.given.curves.get(version))

    def expected_room_s(self, version: str) -> float:
        """When a place for a version is expected, in seconds; 0.0: not known."""
        if (known := self.room_s.get(version)) is not None:
            return known
        on_gpu = bool(self.versions[version].spec.gpu)
        if on_gpu not in self._next_idle_s:
            is_idle = self._has_idle(on_gpu=on_gpu)  # the views of all versions are dear
            self._next_idle_s[on_gpu] = MIN_RESIDENCY_S if is_idle else next_idle_s(self.views.values(), on_gpu=on_gpu)
        return self._next_idle_s[on_gpu]

    def _has_idle(self, *, on_gpu: bool) -> bool:
        """Whether a container of the kind has no call now."""
        idle = (self.versions.get(version) for version in self.world.index.idle.values())
        return any(record is not None and bool(record.spec.gpu) is on_gpu for record in idle)

    def drain(self, container: str, record: VersionRecord, reason: str) -> None:
        """Have a container take no more calls, end those that it has, and end."""
        self.leaving.add(container)
        command = self.drain_command(container, record, reason)
        self.decision.commands.append(AddressedCommand(node=self.world.index.node_of(container), command=command))
        self.decision.notes.append(f"{record.ref}: {container} drains: {reason}")

    def put_aside(self, container: str, record: VersionRecord, reason: str) -> None:
        """Have an idle container leave its slice: it is parked, if that is worth it, or ends."""
        found = self.world.index.get(container)
        if found is None or not self.is_worth_parking(found):
            self.drain(container, record, reason)
            return
        self.leaving.add(container)
        command = Park(epoch=self.given.epoch, container=container, likelihood=self.likelihood(record))
        self.decision.commands.append(AddressedCommand(node=self.world.index.node_of(container), command=command))
        self.decision.notes.append(f"{record.ref}: {container} is parked: {reason}")

    def is_worth_parking(self, container: ContainerReport) -> bool:
        """Whether an idle container is parked rather than ended: its start is more than its callers can bear."""
        view, record = self.views[container.version], self.versions[container.version]
        if not is_idle(container, 0.0) or container.id in self.world.replacing:
            return False
        if not view.is_kept or view.is_shut_down:
            return False
        load_s = self.load_s(record)
        memory = self.world.nodes[self.world.index.node_of(container.id)].memory
        is_worth = tier_of(view.spec, load_s, is_funded=not view.unfunded) is Warmth.PARKED
        return is_worth and can_be_parked(container, memory)

    def _worth(self, version: str) -> float:
        """What a container of a version saves while it stays where it is, by what it takes of its device, or host."""
        record = self.versions.get(version)
        if record is None:
            return 0.0
        spec = record.spec
        return worth(self.load_s(record), self.likelihood(record), spec.vram or spec.memory)

    def load_s(self, record: VersionRecord) -> float:
        """How long a start of a version takes; as long as a first one, where nothing is known."""
        return self.world.scaling.load_s(function_of(record)) or FIRST_LOAD_S

    def likelihood(self, record: VersionRecord) -> float:
        """How likely a function is called in the next minute."""
        memory = self.world.scaling.get(function_of(record))
        return memory.chance() if memory is not None else UNKNOWN_CHANCE

    def drain_command(self, container: str, record: VersionRecord, reason: str) -> Drain:
        within_ms = (record.spec.timeout + DRAIN_MARGIN_S) * 1000.0
        return Drain(epoch=self.given.epoch, container=container, within_ms=within_ms, reason=reason)
