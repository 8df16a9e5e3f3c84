"""Which gateway should be the home of which shard, and what this gateway must do about it. Pure.

Every gateway computes the same *heir* of a shard by rendezvous hashing (Thaler and Ravishankar, "Using name-based
mappings to increase hit rates", IEEE/ACM ToN 1998) over the names of the gateways that live: when one comes or goes,
only its own shards move, and a gateway that is started anew under its name gets them back.

The shard's record names its present home. It holds as long as the lease under which it was written: a gateway with a
new lease owns nothing until it has written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

import msgspec

from pilotlight_core.model.subjects import SHARDS


class GatewayMember(msgspec.Struct, frozen=True):
    """A gateway that lives: its name, its present process, and the epoch of its lease."""

    name: str
    instance: str
    epoch: int


class ShardRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The value of a shard's key. Its revision is the home's epoch."""

    home: GatewayMember
    state: dict[str, bytes] = {}
    """By participant, as the former home handed it over."""


class OwnedShard(msgspec.Struct, frozen=True, kw_only=True):
    """A shard's record and its revision."""

    record: ShardRecord
    revision: int


class TakeShard(msgspec.Struct, frozen=True):
    """The shard has no home: write ourselves over `revision` (0: there is no record)."""

    shard: int
    revision: int


class BeginShard(msgspec.Struct, frozen=True):
    """The record names us, and we do not act yet."""

    shard: int
    owned: OwnedShard


class MoveShard(msgspec.Struct, frozen=True):
    """We are the home, and `heir` should be: hand over our state, or that which we did not begin with."""

    shard: int
    owned: OwnedShard
    heir: GatewayMember


class LeaveShard(msgspec.Struct, frozen=True):
    """We act, and the record does not name us any more."""

    shard: int


ShardStep = TakeShard | BeginShard | MoveShard | LeaveShard


def heir_of(shard: int, members: Sequence[GatewayMember]) -> GatewayMember | None:
    """The gateway that should be the home of a shard; None if none lives."""
    return max(members, key=lambda member: (_weight(shard, member.name), member.name), default=None)


def steps(
    records: Mapping[int, OwnedShard],
    members: Sequence[GatewayMember],
    me: GatewayMember,
    acting: Mapping[int, int],
    *,
    leaving: bool,
) -> list[ShardStep]:
    """What this gateway must do now.

    Args:
        records: the shards' records, as last seen.
        members: the gateways that live, this one among them.
        acting: shard -> epoch, where we act as the home.
        leaving: we are about to end: we take and begin nothing, and every shard has another heir.
    """
    heirs = [member for member in members if not (leaving and member == me)]
    found: list[ShardStep] = []
    for shard in range(SHARDS):
        owned = records.get(shard)
        step = step_of(shard, owned, heir_of(shard, heirs), members, me, acting.get(shard), leaving=leaving)
        if step is not None:
            found.append(step)
    return found


def step_of(
    shard: int,
    owned: OwnedShard | None,
    heir: GatewayMember | None,
    members: Iterable[GatewayMember],
    me: GatewayMember,
    acting: int | None,
    *,
    leaving: bool,
) -> ShardStep | None:
    """What it must do about one shard, whose heir is `heir`; None: nothing."""
    if owned is None or owned.record.home not in members:
        if acting is not None:
            return LeaveShard(shard)
        return TakeShard(shard, owned.revision if owned is not None else 0) if heir == me else None
    if owned.record.home != me:
        return LeaveShard(shard) if acting is not None else None
    if acting != owned.revision and not leaving:
        return BeginShard(shard, owned)
    return MoveShard(shard, owned, heir) if heir is not None and heir != me else None


@lru_cache(maxsize=64 * SHARDS)
def _weight(shard: int, name: str) -> bytes:
    return blake2b(f"{shard} {name}".encode(), digest_size=8).digest()
