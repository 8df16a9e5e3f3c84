"""Records of launches, as a leader writes them: each before what follows from it is done, and only over older leaders'.

Beside them stand the token by which a machine joins, and what is on record of its node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec.structs import replace

from pilotlight_core.model.records.join_secrets import new_join_secret
from pilotlight_core.model.records.nodes import JoinTokenRecord, NodeLabels, NodeRecord, NodeState
from pilotlight_core.model.records.pools import LaunchRecord, LaunchState, PoolRecord

MOST_FORMER = 3
"""Tokens of leaders before that stay valid for one launch."""


class Deposed(Exception):
    """A later leader has written the record, or the slot is taken: this one's decision counts no more."""


class PoolRegistry(Protocol):
    """The records that this reads and writes."""

    def pools(self) -> Iterator[PoolRecord]: ...
    async def pool(self, name: str) -> PoolRecord | None: ...
    def launches(self) -> Iterator[LaunchRecord]: ...
    def node_nowait(self, node: str) -> NodeRecord | None: ...
    async def change_launch(
        self, pool: str, slot: int, change: Callable[[LaunchRecord | None], LaunchRecord | None]
    ) -> LaunchRecord | None: ...
    async def change_node(
        self, node: str, change: Callable[[NodeRecord | None], NodeRecord | None]
    ) -> NodeRecord | None: ...
    async def change_join_token(
        self, token: str, change: Callable[[JoinTokenRecord | None], JoinTokenRecord | None]
    ) -> JoinTokenRecord | None: ...


class LaunchBook:
    """`epoch` gives that of the lease under which this process acts now."""

    def __init__(self, registry: PoolRegistry, epoch: Callable[[], int]) -> None:
        self._registry = registry
        self._epoch = epoch

    async def create(self, record: LaunchRecord) -> LaunchRecord:
        """Put a launch on record.

        Raises:
            Deposed: its slot is taken.
        """

        def made(present: LaunchRecord | None) -> LaunchRecord:
            if present is not None and present.id != record.id:
                raise Deposed(f"{record.key} is taken")
            return replace(record, epoch=self._epoch())

        written = await self._registry.change_launch(record.pool, record.slot, made)
        assert written is not None  # noqa: S101 - `made` removes none
        return written

    async def change(
        self, record: LaunchRecord, change: Callable[[LaunchRecord], LaunchRecord | None]
    ) -> LaunchRecord | None:
        """Write what follows for a launch; None: it is over.

        Raises:
            Deposed: a later leader has changed it, or it is not there any more.
        """
        epoch = self._epoch()

        def changed(present: LaunchRecord | None) -> LaunchRecord | None:
            if present is None or present.id != record.id or present.epoch > epoch:
                raise Deposed(f"{record.key} is another leader's")
            after = change(present)
            return replace(after, epoch=epoch) if after is not None and after != present else after

        return await self._registry.change_launch(record.pool, record.slot, changed)

    async def move(self, record: LaunchRecord, state: LaunchState, at: float, reason: str = "") -> None:
        """Let a launch come into a state."""
        await self.change(
            record,
            lambda now: replace(now, state=state, changed_at=at, reason=reason) if now.state is not state else now,
        )

    async def forget(self, record: LaunchRecord) -> None:
        """The machine is gone: so are its node's record, and the token that it may not have used.

        Raises:
            Deposed: as `change` does, and then nothing of it is removed.
        """
        await self.change(record, lambda now: now)
        await self.drop_tokens(record)
        await self._registry.change_node(record.node, lambda _: None)
        await self.change(record, lambda _: None)

    async def issue_token(self, record: LaunchRecord, region: str, at: float, expires_at: float) -> str:
        """A token by which the machine's node joins, under its name and no other; only its digest is stored.

        Those that were made before stay until the node is up: a leader before may have given one to the machine.
        """
        now = self._now(record)
        former = (*now.former_tokens, now.join_token) if now.join_token else now.former_tokens
        # The first is what the machine has, or else one of the last: its provider takes each order once.
        kept = former if len(former) <= MOST_FORMER else (former[0], *former[1 - MOST_FORMER :])
        secret = new_join_secret()
        labels = NodeLabels(region=region, zone=record.zone, pool=record.pool, spot=record.spot)
        token = JoinTokenRecord(
            id=secret.id, sha256=secret.sha256, labels=labels, created_at=at, expires_at=expires_at, node=record.node
        )
        await self.change(record, lambda now: replace(now, join_token=secret.id, former_tokens=kept))
        await self._registry.change_join_token(secret.id, lambda _: token)
        for old in set(former).difference(kept):
            await self._registry.change_join_token(old, lambda _: None)
        return str(secret)

    async def drain_node(self, record: LaunchRecord) -> None:
        """Have the node of a machine that goes take nothing new, and its containers end as others start elsewhere."""
        known = self._registry.node_nowait(record.node)
        if known is None or known.state is not NodeState.DRAINING:
            await self._registry.change_node(
                record.node,
                lambda present: replace(present or NodeRecord(node=record.node), state=NodeState.DRAINING),
            )

    async def set_node_zone(self, record: LaunchRecord) -> None:
        """The zone of a machine is known when it is there: its node, which joined by a token, has that one."""
        known = self._registry.node_nowait(record.node)
        if known is None or known.labels is None or known.labels.zone == record.zone:
            return

        def labelled(present: NodeRecord | None) -> NodeRecord | None:
            if present is None or present.labels is None:
                return present
            return replace(present, labels=replace(present.labels, zone=record.zone))

        await self._registry.change_node(record.node, labelled)

    async def drop_tokens(self, record: LaunchRecord) -> None:
        """Nobody joins by them any more."""
        now = self._now(record)
        for name in (*now.former_tokens, now.join_token):
            if name:
                await self._registry.change_join_token(name, lambda _: None)

    def _now(self, record: LaunchRecord) -> LaunchRecord:
        return next((each for each in self._registry.launches() if each.id == record.id), record)
