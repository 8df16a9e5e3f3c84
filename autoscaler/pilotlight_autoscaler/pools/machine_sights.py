"""What a leader has seen of machines since it leads: in their providers' lists, and by their agents' reports.

Instants are unix seconds. All of it is seen again within seconds by the next leader.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pilotlight_autoscaler.policy.nodes.launch_steps import MachineSight
from pilotlight_autoscaler.pools.node_pool import PoolMachine
from pilotlight_core.model.records.pools import LaunchRecord

ORPHANED_S = 60.0
"""A machine that no record knows is ended after so long: its record may have been written a moment ago."""


@dataclass(kw_only=True)
class MachineSights:
    watched_since: float = 0.0
    """When the lease began."""
    _listed: dict[str, dict[str, PoolMachine]] = field(default_factory=dict)
    """By pool: its machines by launch; those of none by their own names."""
    _listed_at: dict[str, float] = field(default_factory=dict)
    _unlisted_since: dict[str, float] = field(default_factory=dict)
    """By launch."""
    _heard_at: dict[str, float] = field(default_factory=dict)
    _empty_since: dict[str, float] = field(default_factory=dict)
    _asked_at: dict[str, float] = field(default_factory=dict)
    _orphaned_since: dict[str, float] = field(default_factory=dict)
    """By the machine's name at its provider."""
    asking: set[str] = field(default_factory=set)
    """Launches of which the provider is being asked."""

    def list_read(
        self, pool: str, machines: Sequence[PoolMachine], launches: Iterable[LaunchRecord], at: float
    ) -> None:
        """A pool's list is what there was at `at`, when it was asked for."""
        launches = list(launches)
        self._listed[pool] = _by_launch(machines, {each.id: each.provider_id for each in launches})
        self._listed_at[pool] = at
        for launch in launches:
            if launch.id in self._listed[pool]:
                self._unlisted_since.pop(launch.id, None)
            elif launch.made_at <= at:
                self._unlisted_since.setdefault(launch.id, at)

    def node_seen(self, launch: str, heard_at: float | None, *, is_empty: bool, at: float) -> None:
        """How the node of a launch is; `heard_at` None: there is no report of it."""
        if heard_at is not None:
            self._heard_at[launch] = heard_at
        if is_empty:
            self._empty_since.setdefault(launch, at)
        else:
            self._empty_since.pop(launch, None)

    def last_report_at(self, launch: str) -> float:
        """When the node of a launch reported last, or this leader began to listen."""
        return max(self._heard_at.get(launch, 0.0), self.watched_since)

    def asked(self, launch: str, at: float) -> None:
        """The provider is asked for it, or to end it."""
        self._asked_at[launch] = at

    def machine(self, record: LaunchRecord) -> PoolMachine | None:
        return self._listed.get(record.pool, {}).get(record.id)

    def empty_since(self, launch: str) -> float | None:
        return self._empty_since.get(launch)

    def list_age(self, pool: str, at: float) -> float | None:
        """How old the list of a pool is; None: there is none."""
        read_at = self._listed_at.get(pool)
        return None if read_at is None else at - read_at

    def sight(self, record: LaunchRecord) -> MachineSight:
        machine = self.machine(record)
        return MachineSight(
            listed_at=self._listed_at.get(record.pool, 0.0),
            is_listed=machine is not None,
            is_ending=machine is not None and machine.is_ending,
            unlisted_since=self._unlisted_since.get(record.id),
            watched_since=self.watched_since,
            heard_at=self._heard_at.get(record.id),
            is_empty=record.id in self._empty_since,
            asked_at=self._asked_at.get(record.id),
            is_asking=record.id in self.asking,
        )

    def orphans(self, pool: str, known: Collection[str], at: float) -> list[PoolMachine]:
        """Machines of a pool that no record has known for a while."""
        found = []
        for machine in self._listed.get(pool, {}).values():
            name = machine.provider_id
            if machine.launch in known or machine.is_ending:
                self._orphaned_since.pop(name, None)
            elif at - self._orphaned_since.setdefault(name, at) > ORPHANED_S and name not in self.asking:
                found.append(machine)
        return found

    def keep(self, launches: Mapping[str, LaunchRecord]) -> None:
        """Forget all others."""
        for known in (self._unlisted_since, self._heard_at, self._empty_since, self._asked_at):
            for name in known.keys() - launches.keys():
                del known[name]
        present = {each.provider_id for listed in self._listed.values() for each in listed.values()}
        for name in self._orphaned_since.keys() - present:
            del self._orphaned_since[name]


def _by_launch(machines: Iterable[PoolMachine], on_record: Mapping[str, str]) -> dict[str, PoolMachine]:
    """Each launch with one machine: the one on its record, else one that stays. Others with its tag are of no launch.

    A provider makes two where a request that it had taken was sent again and it did not know it.
    """

    def choice(each: PoolMachine) -> tuple[bool, bool, str]:
        return each.provider_id != on_record.get(each.launch), each.is_ending, each.provider_id

    found: dict[str, PoolMachine] = {}
    for each in sorted(machines, key=choice):
        if each.launch and each.launch not in found:
            found[each.launch] = each
        else:
            found[each.provider_id] = replace(each, launch="")
    return found
