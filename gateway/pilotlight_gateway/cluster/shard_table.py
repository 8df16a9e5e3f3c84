"""What this gateway knows of gateways and shards, and of its own right to act. `Shards` keeps it up to date."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from pilotlight_core.model.subjects import SHARDS
from pilotlight_gateway.cluster.shard_ownership import ShardOwner
from pilotlight_gateway.cluster.shard_plan import GatewayMember

EPOCHS_KNOWN = 10_000


class OwnLease(Protocol):
    """The lease under which this gateway acts."""

    @property
    def epoch(self) -> int:
        """0 before there was one."""
        ...

    def valid(self, at: float) -> bool:
        """Whether it may act at `at`."""
        ...


class ShardTable:
    """Answers at once, from memory. The real `ShardOwnership`."""

    def __init__(self, instance: str, lease: OwnLease) -> None:
        self.instance = instance
        """This process."""
        self._lease = lease
        self.acting: dict[int, int] = {}
        """Shard -> the epoch under which we are its home."""
        self.members: tuple[GatewayMember, ...] = ()
        """The gateways that live, by name."""
        self._owners: list[ShardOwner | None] = [None] * SHARDS
        self._instances: dict[int, str] = {}
        """Which process has, or had, a lease of an epoch: a call keeps the one under which it came."""
        self.newest = 0
        """The highest epoch that any gateway has had, as far as was seen."""
        self.is_settled = False
        """Whether every shard has had a living home."""

    @property
    def epoch(self) -> int:
        """Of this gateway's own lease: the calls that it takes carry it; 0 before there is one."""
        return self._lease.epoch

    def mine(self, shard: int, at: float) -> int | None:
        """The epoch under which this gateway may act as the shard's home at `at`; None if it may not."""
        return self.acting.get(shard) if self._lease.valid(at) else None

    def owner(self, shard: int) -> ShardOwner | None:
        """Who is the shard's home, as last heard; None while nobody is."""
        return self._owners[shard]

    def home_under(self, epoch: int) -> tuple[int, str] | None:
        """The shard whose home acts under `epoch`, and that home's process; None: nobody does now."""
        owners = ((shard, self._owners[shard]) for shard in range(SHARDS))
        return next(((shard, one.gateway) for shard, one in owners if one is not None and one.epoch == epoch), None)

    def process_of(self, epoch: int) -> str | None:
        """The living gateway whose calls carry `epoch`; None if it is gone."""
        instance = self._instances.get(epoch)
        return instance if any(member.instance == instance for member in self.members) else None

    def others(self) -> list[str]:
        """The other gateways that live."""
        return [member.instance for member in self.members if member.instance != self.instance]

    # -- what is seen --------------------------------------------------------------------------------------------

    def see_members(self, members: Iterable[GatewayMember]) -> frozenset[str] | None:
        """These gateways live now. Returns the processes that are gone; None: nothing has changed."""
        now = tuple(sorted(members, key=lambda member: member.name))
        if now == self.members:
            return None
        gone = {member.instance for member in self.members} - {member.instance for member in now}
        self.members = now
        self.newest = max([self.newest, *(member.epoch for member in now)])
        self._instances |= {member.epoch: member.instance for member in now}
        while len(self._instances) > EPOCHS_KNOWN:
            del self._instances[min(self._instances)]
        return frozenset(gone - {self.instance})

    def see_owners(self, owners: Sequence[ShardOwner | None]) -> frozenset[int]:
        """These are the homes of all shards now. Returns the shards that have another one than before."""
        changed = frozenset(s for s in range(SHARDS) if owners[s] is not None and owners[s] != self._owners[s])
        self._owners = list(owners)
        self.is_settled = self.is_settled or all(owner is not None for owner in owners)
        return changed
