"""The port that says which gateway is the home of a shard, and one in memory for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import msgspec


class ShardOwner(msgspec.Struct, frozen=True):
    """The home of a shard."""

    gateway: str
    """The process, as subjects name it."""
    epoch: int


class ShardOwnership(Protocol):
    """Answers from memory."""

    def owner(self, shard: int) -> ShardOwner | None:
        """The home of a shard, as last known; None: it has none."""
        ...

    def mine(self, shard: int, at: float) -> int | None:
        """The epoch under which this gateway may act as the shard's home at `at`; None if it may not."""
        ...

    def home_under(self, epoch: int) -> tuple[int, str] | None:
        """The shard whose home acts under `epoch`, and that home's process; None: none does."""
        ...

    def others(self) -> list[str]:
        """The other gateways that live."""
        ...


@dataclass(kw_only=True)
class MemoryShardOwnership:
    """One gateway's view, set by tests."""

    gateway: str
    home: ShardOwner | None = None
    alive: set[str] = field(default_factory=set)
    lease_holds: bool = True

    def owner(self, shard: int) -> ShardOwner | None:  # noqa: ARG002 - one gateway owns all of them
        return self.home

    def mine(self, shard: int, at: float) -> int | None:  # noqa: ARG002
        ours = self.home is not None and self.home.gateway == self.gateway and self.lease_holds
        return self.home.epoch if ours and self.home is not None else None

    def home_under(self, epoch: int) -> tuple[int, str] | None:
        return (0, self.home.gateway) if self.home is not None and self.home.epoch == epoch else None

    def others(self) -> list[str]:
        return sorted(self.alive - {self.gateway})
