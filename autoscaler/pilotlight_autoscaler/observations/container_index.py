"""The containers that nodes report, by id and by version, and what of them has changed since a pass last asked.

A thousand reports come each second, and passes ask about a few versions: so each report is filed when it comes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from msgspec.structs import force_setattr

from pilotlight_core.model.messages.node_messages import ContainerReport, ContainerState
from pilotlight_core.model.messages.node_reports.report_revisions import MovingContainer

LIVE = (ContainerState.READY, ContainerState.BINDING, ContainerState.LOADING, ContainerState.WARMING)
"""A tuple, the most frequent first: the hash of a member is worked out in Python each time."""
LONG_IDLE_S = 1.0
"""A container that is idle for so long may make room for others."""


@dataclass(kw_only=True)
class FoundContainer:
    """A container as it was last reported. It is changed in place: each is reported once a second."""

    node: str
    """Which reports it."""
    report: ContainerReport


@dataclass(slots=True)
class VersionLoad:
    """What a version's live containers do. It is changed in place."""

    containers: int = 0
    running: int = 0
    """Calls."""


_NONE: Mapping[str, FoundContainer] = {}
_NO_VERSIONS: Mapping[str, None] = {}


class ContainerIndex:
    def __init__(self) -> None:
        self._by_id: dict[str, FoundContainer] = {}
        self._by_version: dict[str, dict[str, FoundContainer]] = {}
        self._loads: dict[str, VersionLoad] = {}
        """Of each version that has containers: passes ask for it more often than it changes."""
        self.idle: dict[str, str] = {}
        """container -> version, of those that are ready and without calls."""
        self.idle_on: dict[str, dict[str, None]] = {}
        """The same containers, by node."""
        self.draining: dict[str, str] = {}
        """container -> version, of those that take no more calls."""
        self._by_tenant: dict[str, dict[str, None]] = {}
        """The versions of each tenant that have containers."""
        self.changed: set[str] = set()
        """Versions whose containers came, went or changed their state."""
        self.changed_tenants: set[str] = set()
        """Tenants whose containers came or went, or have become idle."""
        self.long_idle: set[str] = set()
        """Containers that have become idle for `LONG_IDLE_S`."""

    def __contains__(self, container: str) -> bool:
        return container in self._by_id

    def get(self, container: str) -> ContainerReport | None:
        found = self._by_id.get(container)
        return found.report if found is not None else None

    def version_of(self, container: str) -> str:
        """The version of a container; "": no node reports it."""
        found = self._by_id.get(container)
        return found.report.version if found is not None else ""

    def is_parked(self, container: str) -> bool:
        """Whether it has left its slice, and has none."""
        found = self._by_id.get(container)
        return found is not None and is_parked(found.report)

    def node_of(self, container: str) -> str:
        """The node that reports a container.

        Raises:
            KeyError: none does.
        """
        return self._by_id[container].node

    def ids(self) -> Set[str]:
        """Of all containers that are not gone."""
        return self._by_id.keys()

    def versions(self) -> Mapping[str, Mapping[str, FoundContainer]]:
        """The containers of each version that has some."""
        return self._by_version

    def of_tenant(self, tenant: str) -> Collection[str]:
        """The versions of a tenant that have containers."""
        return self._by_tenant.get(tenant, _NO_VERSIONS).keys()

    def of(self, version: str) -> Iterable[FoundContainer]:
        """A version's containers, with their nodes."""
        return self._by_version.get(version, _NONE).values()

    def load(self, version: str) -> VersionLoad | None:
        """What its containers do that start or serve, by their nodes' last reports; None: it has no containers."""
        return self._loads.get(version)

    def replace(self, node: str, before: Sequence[ContainerReport], after: Sequence[ContainerReport]) -> bool:
        """Take what a node reports instead of what it reported before; whether the same hold the same."""
        if len(before) != len(after):
            self._replace_all(node, before, after)
            return False
        is_same = True
        for known, each in zip(before, after, strict=True):
            found = self._by_id.get(each.id)
            if found is None or found.report is not known or not _are_alike(each, known):
                self._replace_all(node, before, after)
                return False
            found.report = each
            if each.running != known.running and each.state in LIVE:
                self._loads[each.version].running += each.running - known.running
            is_same = is_same and each.slice == known.slice and each.host == known.host
            if not (each.running and known.running):
                self._note_state(each, known)
        return is_same

    def move(self, containers: Sequence[ContainerReport], moved: Sequence[MovingContainer]) -> bool:
        """Take what has moved of a node's containers, in their order, and change them in place.

        False: it is not of them, or they are filed otherwise, and nothing is taken.
        """
        if len(containers) != len(moved):
            return False
        for known, each in zip(containers, moved, strict=True):
            found = self._by_id.get(known.id)
            if found is None or found.report is not known or known.id != each.id or each.running > known.slots:
                return False
        for known, each in zip(containers, moved, strict=True):
            was_running, was_idle_s = known.running, known.idle_s
            force_setattr(known, "running", each.running)
            force_setattr(known, "age_s", each.age_s)
            force_setattr(known, "idle_s", each.idle_s)
            force_setattr(known, "engine", each.engine)
            if each.running != was_running and known.state in LIVE:
                self._loads[known.version].running += each.running - was_running
            if not (each.running and was_running):
                self._note_idle(known, 0.0 if was_running else was_idle_s)
        return True

    def _replace_all(self, node: str, before: Iterable[ContainerReport], after: Iterable[ContainerReport]) -> None:
        """The same, whichever containers come, go, or are in another order."""
        old = {each.id: each for each in before}
        for each in after:
            if each.state is ContainerState.GONE:
                continue
            known, found = old.pop(each.id, None), self._by_id.get(each.id)
            if known is None or found is None or not known.version == each.version == found.report.version:
                if known is not None:
                    self._remove(node, known)
                self._add(node, each)
            else:
                self._count(found.report, -1)
                self._count(each, 1)
                if found.node != node:
                    self._note_busy(found.node, each.id)
                found.node, found.report = node, each
                if known.state is not each.state:
                    self.changed.add(each.version)
            self._note_state(each, known)
        for each in old.values():
            self._remove(node, each)

    def _add(self, node: str, each: ContainerReport) -> None:
        if (other := self._by_id.get(each.id)) is not None:  # another node reports it too
            self._remove(other.node, other.report)
        found = self._by_id[each.id] = FoundContainer(node=node, report=each)
        if each.version not in self._by_version:
            self._by_version[each.version] = {}
            self._by_tenant.setdefault(each.tenant, {})[each.version] = None
            self._loads[each.version] = VersionLoad()
        self._by_version[each.version][each.id] = found
        self._count(each, 1)
        self.changed.add(each.version)
        self.changed_tenants.add(each.tenant)

    def _remove(self, node: str, each: ContainerReport) -> None:
        found = self._by_id.get(each.id)
        if found is None or found.node != node:
            return
        of, tenant = found.report.version, found.report.tenant
        del self._by_id[each.id], self._by_version[of][each.id]
        self._count(found.report, -1)
        if not self._by_version[of]:
            del self._by_version[of], self._loads[of]
            owned = self._by_tenant.get(tenant, {})
            owned.pop(of, None)
            if not owned:
                self._by_tenant.pop(tenant, None)
        self._note_busy(node, each.id)
        self.draining.pop(each.id, None)
        self.changed.add(of)
        self.changed_tenants.add(tenant)

    def _count(self, each: ContainerReport, times: int) -> None:
        if each.state in LIVE:
            load = self._loads[each.version]
            load.containers += times
            load.running += times * each.running

    def _note_state(self, each: ContainerReport, known: ContainerReport | None) -> None:
        if each.state is ContainerState.DRAINING:
            self.draining[each.id] = each.version
        elif known is not None and known.state is ContainerState.DRAINING:
            self.draining.pop(each.id, None)
        self._note_idle(each, known.idle_s if known is not None and not known.running else 0.0)

    def _note_idle(self, each: ContainerReport, was_idle_s: float) -> None:
        """It was idle for so long when it was last heard of."""
        node = self._by_id[each.id].node
        if each.running or each.state is not ContainerState.READY:
            self._note_busy(node, each.id)
            return
        if each.id not in self.idle:
            self.idle_on.setdefault(node, {})[each.id] = None
        self.idle[each.id] = each.version
        if each.idle_s >= LONG_IDLE_S > was_idle_s:
            self.long_idle.add(each.id)
            self.changed_tenants.add(each.tenant)

    def _note_busy(self, node: str, container: str) -> None:
        """It is not idle on its node, or not there."""
        if self.idle.pop(container, None) is not None:
            there = self.idle_on[node]
            del there[container]
            if not there:
                del self.idle_on[node]


def _are_alike(one: ContainerReport, other: ContainerReport) -> bool:
    return one.state is other.state and one.version == other.version


def is_parked(container: ContainerReport) -> bool:
    """Whether it has left its slice, and has none."""
    return container.state is ContainerState.PARKED and not container.slice
