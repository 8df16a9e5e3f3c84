"""The gateways and homes of shards that this gateway knows, and its own right to act. `Shards` updates it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    """The real `ShardOwnership`."""

    def __init__(self, instance: str, lease: OwnLease) -> None:
        self.instance = instance
        """This process."""
        self._lease = lease
        self.acting: dict[int, int] = {}
        """Shard -> the epoch under which this gateway is its home."""
        self.members: tuple[GatewayMember, ...] = ()
        """The gateways that live, by name."""
        self._owners: list[ShardOwner | None] = [None] * SHARDS
        self._instances: dict[int, str] = {}
        """Epoch -> the process that has, or had, its lease."""
        self.address_of: Callable[[str], bytes] = lambda _process: b""
        """Where clients reach a gateway's process, if it is known (`GatewayAddresses`)."""
        self.newest = 0
        """The highest epoch of any gateway that was seen."""
        self.is_settled = False
        """Whether every shard has had a living home."""

    @property
    def epoch(self) -> int:
        """Of this gateway's own lease; its call ids carry it. 0: there was none yet."""
        return self._lease.epoch

    def mine(self, shard: int, at: float) -> int | None:
        """The epoch under which this gateway may act as the shard's home at `at`; None if it may not."""
        return self.acting.get(shard) if self._lease.valid(at) else None

    def owner(self, shard: int) -> ShardOwner | None:
        """The shard's home, as last known; None: it has none."""
        return self._owners[shard]

    def address_of_home(self, shard: int) -> bytes:
        """Where clients reach the shard's home; b"" if that is here, or not known."""
        owner = self._owners[shard]
        if owner is None or owner.gateway == self.instance:
            return b""
        return self.address_of(owner.gateway)

    def home_under(self, epoch: int) -> tuple[int, str] | None:
        """The shard whose home acts under `epoch`, and that home's process; None: none does."""
        owners = ((shard, self._owners[shard]) for shard in range(SHARDS))
        return next(((shard, one.gateway) for shard, one in owners if one is not None and one.epoch == epoch), None)

    def process_of(self, epoch: int) -> str | None:
        """The process whose call ids carry `epoch`; None if it is gone."""
        instance = self._instances.get(epoch)
        return instance if any(member.instance == instance for member in self.members) else None

    def others(self) -> list[str]:
        """The other gateways that live."""
        return [member.instance for member in self.members if member.instance != self.instance]

    # -- what is seen --------------------------------------------------------------------------------------------

    def see_members(self, members: Iterable[GatewayMember]) -> frozenset[str] | None:
        """Set the living gateways. Returns the processes that are gone; None: nothing has changed."""
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
        """Set the homes of all shards. Returns the shards with a new one."""
        changed = frozenset(s for s in range(SHARDS) if owners[s] is not None and owners[s] != self._owners[s])
        self._owners = list(owners)
        self.is_settled = self.is_settled or all(owner is not None for owner in owners)
        return changed
