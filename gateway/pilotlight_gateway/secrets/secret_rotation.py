"""A secret that is set anew: containers with the former value are replaced, in turn.

The home of a function looks at what its containers report, and asks the controller to end one that has other values
than are stored now: one of a version at a time, and none while another of it starts or ends. One that is the only one
is replaced first: it serves until another is ready, unless it has nothing to do and the function keeps none. Where
others do not start with what is stored now, it goes on. What starts or ends for longer than its function allows is what
a node says, and holds up nothing. Whichever gateway looks comes to the same, so that nothing has to be remembered: a
gateway may die at any time, and the next one waits for a replacement as long again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import structlog

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.host.binding_book import Bindings
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.controller_questions import ContainerStopReply, StopContainer
from pilotlight_core.model.messages.node_messages import ContainerReport, ContainerState
from pilotlight_core.model.secrets.secret_uses import secrets_named
from pilotlight_core.model.spec import FunctionSpec, VersionRecord
from pilotlight_gateway.fleet.container_stopper import ContainerStopper
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.secrets.secret_records import SecretRecord, revision_of
from pilotlight_gateway.secrets.secret_store import SecretStore
from pilotlight_gateway.tenancy.registry_port import RegistryPort

LOOKS_EVERY_S = 1.0
SEEN_S = 3.0
"""After a container was asked to end: until then its node has said that it does."""
REPLACED_S = 30.0
"""Until then as many are ready again as before, or there will not be: the function needs fewer, or there is no room."""
BEGUN_S = 60.0
"""By then another one starts, for one that is to be replaced first; or there is no room, and it ends all the same."""
IDLE_S = 5.0
"""A container without calls for so long, of a function that keeps none, is not replaced."""
END_MARGIN_S = 5.0
"""Beyond the function's timeout, within which its calls end."""
BELIEVED_S = 30.0
"""Beyond the time that a function may take to start, and a call of it: until then a container starts, or ends."""
STARTING = frozenset({ContainerState.BINDING, ContainerState.LOADING, ContainerState.WARMING})
KEPT = frozenset({ContainerState.READY, ContainerState.PARKED})
SETTLED = KEPT | {ContainerState.GONE}
REASON = "a secret was set anew"

log = structlog.get_logger(__name__)


class LastReplacement(NamedTuple):
    """When a container of a version was last asked to end, and how many were ready then."""

    at: float
    ready: int


class FirstReplacement(NamedTuple):
    """A container that serves until another is ready."""

    container: str
    since_at: float
    """When another was first asked for, or its start was last known to have failed."""


def awaited_replacement(
    containers: Iterable[ContainerReport], first: FirstReplacement | None, revision: str
) -> FirstReplacement | None:
    """The one that is being replaced first, if it is still there with former values."""
    if first is None:
        return None
    return next((first for one in containers if one.id == first.container and is_stale(one, revision)), None)


def is_stale(one: ContainerReport, revision: str) -> bool:
    """Whether a container that serves, or is parked and may again, has former values."""
    return one.state in KEPT and bool(one.secrets) and one.secrets != revision


def is_given_up(containers: Iterable[ContainerReport], first: FirstReplacement, at: float) -> bool:
    """Whether no other one comes: none starts after a while."""
    starts = any(one.state in STARTING for one in containers)
    return not starts and at - first.since_at >= BEGUN_S


def container_to_replace(
    containers: Iterable[ContainerReport], revision: str, last: LastReplacement | None, at: float
) -> str:
    """Which container of one version is replaced at the instant `at`, as its values are not `revision`; "": none.

    One that is parked goes at once: nobody misses it, and it would serve with what it has. Else the oldest of those
    that are ready, unless one of the version is starting or ending, or is not replaced yet.
    """
    there = [one for one in containers if one.state is not ContainerState.GONE]
    if parked := [one.id for one in there if one.state is ContainerState.PARKED and is_stale(one, revision)]:
        return min(parked)
    present = [one for one in there if one.state is not ContainerState.PARKED]
    if any(one.state is not ContainerState.READY for one in present):
        return ""
    if last is not None and at - last.at < (REPLACED_S if len(present) < last.ready else SEEN_S):
        return ""
    stale = [one for one in present if is_stale(one, revision)]
    return max(stale, key=lambda one: (one.age_s, one.id)).id if stale else ""


def keeps_serving(spec: FunctionSpec, containers: Iterable[ContainerReport], container: str) -> bool:
    """Whether a container is to be replaced before it ends."""
    named = (one for one in containers if one.id == container and one.state is not ContainerState.PARKED)
    return any(spec.min_containers or one.idle_s < IDLE_S for one in named)


class SecretRotation:
    """Looks each second while `running` is open. `is_home`: whether this gateway is `tenant:app.function`'s home."""

    def __init__(
        self,
        store: SecretStore,
        registry: RegistryPort,
        fleet: FleetView,
        stopper: ContainerStopper,
        bindings: Bindings,
        is_home: Callable[[str], bool],
    ) -> None:
        self._store = store
        self._registry = registry
        self._fleet = fleet
        self._stopper = stopper
        self._bindings = bindings
        self._is_home = is_home
        self._last: dict[str, LastReplacement] = {}
        self._first: dict[str, FirstReplacement] = {}
        """By version: the container that serves until another is ready."""
        self._unsettled: dict[str, float] = {}
        """By container that starts or ends: since when."""

    @asynccontextmanager
    async def running(self, bus: Bus) -> AsyncIterator[None]:
        """Look until the block ends."""
        task = bus.spawn(self._run())
        try:
            yield
        finally:
            await bus.end(task)

    async def replace_stale(self, at: float) -> None:
        """Ask for the ends that are due at the monotonic second `at`."""
        self._last = {version: last for version, last in self._last.items() if at - last.at < REPLACED_S}
        loaded = self._loaded(at)
        self._note_unsettled(loaded, at)
        for version_id, reported in loaded.items():
            version = self._registry.version(version_id)
            if version is None or not self._is_home(_function_of(version)):
                continue
            containers = self._believed(reported, version.spec, at)
            if (stored := self._stored(version)) and self._due(version_id, containers, revision_of(stored), at):
                await self._replace(version, containers, at)
        self._first = {version: first for version, first in self._first.items() if version in loaded}

    def _note_unsettled(self, loaded: Mapping[str, list[ContainerReport]], at: float) -> None:
        """Since when each container starts or ends, by this clock: a node may tell any age, for ever."""
        present = [one.id for containers in loaded.values() for one in containers if one.state not in SETTLED]
        self._unsettled = {container: self._unsettled.get(container, at) for container in present}

    def _believed(self, containers: list[ContainerReport], spec: FunctionSpec, at: float) -> list[ContainerReport]:
        """Without those that start or end for longer than can be."""
        longest_s = max(spec.startup_timeout, spec.timeout) + BELIEVED_S
        return [one for one in containers if at - self._unsettled.get(one.id, at) < longest_s]

    def _due(self, version: str, containers: list[ContainerReport], revision: str, at: float) -> str:
        """The container that is to be replaced now; "": none."""
        if (first := awaited_replacement(containers, self._first.get(version), revision)) is not None:
            return first.container
        return container_to_replace(containers, revision, self._last.get(version), at)

    async def _replace(self, version: VersionRecord, containers: list[ContainerReport], at: float) -> None:
        """Ask for the end of a container, if the bus says as well that its values are former ones."""
        secrets = await self._present(version)
        if not secrets or not (container := self._due(version.id, containers, revision_of(secrets), at)):
            return
        first = self._first.get(version.id)
        if first is None or first.container != container:
            first = FirstReplacement(container, at)
        is_first = keeps_serving(version.spec, containers, container) and not is_given_up(containers, first, at)
        ready = sum(one.state is ContainerState.READY for one in containers)
        awaited = await self._end(container, version, replace_first=is_first)
        if awaited is not None:
            self._first[version.id] = first._replace(since_at=at) if awaited.failing else first
        else:
            self._first.pop(version.id, None)
            self._last[version.id] = LastReplacement(at, ready)

    def _loaded(self, at: float) -> dict[str, list[ContainerReport]]:
        """The containers of each version of which one has values."""
        reports = self._fleet.reports(at)
        versions = {one.version for report in reports for one in report.containers if one.secrets}
        found: dict[str, list[ContainerReport]] = {version: [] for version in versions}
        for report in reports if versions else ():
            for container in report.containers:
                bound = self._bindings.live(container.id) if container.version in versions else None
                if bound is not None and bound.node == report.node:  # no node has others' containers replaced
                    found[container.version].append(container)
        return found

    def _stored(self, version: VersionRecord) -> Mapping[str, SecretRecord]:
        """What is stored of its secrets; nothing, if one is not there: what runs goes on with what it has."""
        if not self._store.is_fresh():
            return {}
        found = {name: self._store.secret_nowait(version.tenant, name) for name in secrets_named(version.spec)}
        known = {name: record for name, record in found.items() if record is not None}
        return known if len(known) == len(found) else {}

    async def _present(self, version: VersionRecord) -> Mapping[str, SecretRecord]:
        """As `_stored`, from the bus: what is known here may be of before a container was loaded."""
        try:
            found = {name: await self._store.secret(version.tenant, name) for name in secrets_named(version.spec)}
        except BusError:
            return {}
        known = {name: record for name, record in found.items() if record is not None}
        return known if len(known) == len(found) else {}

    async def _end(self, container: str, version: VersionRecord, *, replace_first: bool) -> ContainerStopReply | None:
        """Have a container end; the answer if it serves until another is ready."""
        within_ms = (version.spec.timeout + END_MARGIN_S) * 1000
        asked = StopContainer(
            container=container, tenant=version.tenant, within_ms=within_ms, reason=REASON, replace_first=replace_first
        )
        try:
            answer = await self._stopper.stop(asked)
        except PilotlightError as error:
            log.info("a container with a former secret is still there", container=container, why=error.detail)
            return None
        if answer is not None and not answer.node:
            return answer
        log.info("a container is replaced: a secret was set anew", container=container, version=version.ref)
        return None

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOKS_EVERY_S)
            try:
                await self.replace_stale(time.monotonic())
            except Exception:
                log.exception("secrets that were set anew could not be looked after")


def _function_of(version: VersionRecord) -> str:
    return f"{version.tenant}:{version.app}.{version.function}"
