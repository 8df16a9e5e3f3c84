"""What the servers of the bus keep for gateways: their leases, and which of them is the home of which shard."""

from __future__ import annotations

from pilotlight_gateway.cluster.shard_ownership import ShardOwner
from pilotlight_gateway.cluster.shard_plan import GatewayMember, OwnedShard, ShardRecord

TTL = 3.0
LEASE_MARGIN = 0.5


class Board:
    """By the world's clock. Every write is a compare-and-set."""

    def __init__(self) -> None:
        self._leases: dict[str, tuple[GatewayMember, float]] = {}
        self.records: dict[int, OwnedShard] = {}
        self._revision = 0
        self._members: tuple[GatewayMember, ...] = ()
        self._look_at = 0.0
        """When a lease may be over."""
        self.changed_at = 0.0
        """When gateways last came or went."""
        self.version = 0
        """Rises with every change that a gateway can see."""

    def renew(self, name: str, instance: str, epoch: int, now: float) -> int:
        """Renew or take the lease of a name; returns its epoch."""
        held = self._leases.get(name)
        if held is None or held[0].instance != instance or held[0].epoch != epoch or now >= held[1]:
            self._revision += 1
            epoch = self._revision
            self._look_at = 0.0
        self._leases[name] = GatewayMember(name, instance, epoch), now + TTL
        return epoch

    def members(self, now: float) -> tuple[GatewayMember, ...]:
        """The gateways whose lease is not over."""
        if now >= self._look_at:
            living = sorted(((m, until) for m, until in self._leases.values() if now < until), key=lambda m: m[0].name)
            self._look_at = min((until for _, until in living), default=0.0)
            members = tuple(member for member, _ in living)
            if members != self._members:
                self._members, self.changed_at = members, now
                self.version += 1
        return self._members

    def owner(self, shard: int, now: float) -> ShardOwner | None:
        """The home of a shard, if its lease is not over."""
        owned = self.records.get(shard)
        if owned is None or owned.record.home not in self.members(now):
            return None
        return ShardOwner(owned.record.home.instance, owned.revision)

    def write(self, shard: int, record: ShardRecord, expected: int) -> int:
        """Returns the revision; 0: another one stands there than `expected`."""
        known = self.records.get(shard)
        if (known.revision if known is not None else 0) != expected:
            return 0
        self._revision += 1
        self.version += 1
        self.records[shard] = OwnedShard(record=record, revision=self._revision)
        return self._revision


class SimLease:
    """One gateway's lease as it sees it itself."""

    def __init__(self, overstays: float) -> None:
        self.epoch = 0
        self._until = float("-inf")
        # A lease alone does not fence: some homes act on after it has passed to another.
        self._overstays = overstays

    def renewed(self, epoch: int, asked: float) -> None:
        """The servers say so; `asked` is when they were asked, by our own clock."""
        self.epoch, self._until = epoch, asked + TTL - LEASE_MARGIN

    def valid(self, at: float) -> bool:
        """Whether it acts at `at`."""
        return at < self._until + self._overstays

    def is_over(self, at: float) -> bool:
        """Whether it acts on although it may not: it neither sees nor writes anything of leases and shards then."""
        return self._until <= at < self._until + self._overstays
