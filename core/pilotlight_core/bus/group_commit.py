"""Compare-and-sets that travel together: a group commit for a bucket that is written by many at once.

Each write stays one compare-and-set on its own key, synced before it is confirmed. But those that are wanted in
consecutive turns of the loop, or while `LANES` groups are on their way, go as one batch, which the server takes whole
or not at all (JetStream's atomic batches, ADR-50): one proposal to the cluster, one sync and one confirmation for all
of them.

A group that is not taken, whatever the reason, says nothing of its members: then each goes alone, and hears what
becomes of it. So keys that several are likely to write at the same time do not belong here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

import structlog

from pilotlight_core.bus.bus_errors import (
    BusDown,
    BusTimeout,
    KeyConflict,
    MessageTooLarge,
    NoResponders,
    StoreRefused,
)
from pilotlight_core.bus.jetstream import JetStream, OutgoingMessage
from pilotlight_core.bus.kv import EXPECTED, TIMEOUT, TTL, Kv, milliseconds
from pilotlight_core.bus.streams import key_subject

LANES = 2
"""Groups on their way at a time: one boards while the other is stored. More would make them smaller, not faster."""
QUIET_TURNS = 2
"""Turns of the loop that bring no other write before a group leaves. An idle loop turns in microseconds; a busy one
brings those whom the last group has just confirmed, and who would go alone behind this one."""
TURNS_AT_MOST = 16
BOARDING_S = 0.01
"""Then, or after that many turns, a group leaves, whoever comes."""
TOGETHER = 128
"""Writes in one group; a server takes 1,000."""
TOGETHER_BYTES = 2**20
PATIENCE_S = 2.0
"""For a group; what is left of a write's time is for going alone."""

log = structlog.get_logger(__name__)


class _Write(NamedTuple):
    key: str
    value: bytes
    revision: int
    ttl: float | None
    done: asyncio.Future[int]
    """Its revision; 0: it has to go alone."""


class GroupCommit:
    """The writes of this process to one bucket whose stream has `allow_atomic`."""

    def __init__(self, jetstream: JetStream, bucket: str, loop: asyncio.AbstractEventLoop) -> None:
        self._jetstream = jetstream
        self._bucket = bucket
        self._loop = loop
        self._kv = Kv(jetstream, bucket)
        self._waiting: deque[_Write] = deque()
        self._boarding: asyncio.Task[None] | None = None
        self._away: set[asyncio.Task[None]] = set()

    async def update(self, key: str, value: bytes, revision: int, *, ttl: float | None = None) -> int:
        """As `Kv.update`. If this is cancelled, the value may be written or not.

        Raises:
            WrongRevision: if the key has another one; also if the confirmation of this very write was lost.
            BusDown, BusTimeout, NoResponders: after 5 s. StoreRefused, MessageTooLarge.
        """
        until = self._loop.time() + TIMEOUT
        write = _Write(key, value, revision, ttl, self._loop.create_future())
        self._waiting.append(write)
        self._call()
        stored = await write.done
        left = max(TIMEOUT - PATIENCE_S, until - self._loop.time())
        return stored or await self._kv.update(key, value, revision, ttl=ttl, timeout=left)

    def _call(self) -> None:
        """Have a group board, if somebody waits and there is a lane for it."""
        if self._waiting and self._boarding is None and len(self._away) < LANES:
            task = self._boarding = self._loop.create_task(self._travel())
            self._away.add(task)
            task.add_done_callback(self._arrived)

    async def _board(self) -> list[_Write]:
        """Those who go together."""
        quiet, end = 0, self._loop.time() + BOARDING_S
        for _ in range(TURNS_AT_MOST):
            before = len(self._waiting)
            if before >= TOGETHER or quiet == QUIET_TURNS or self._loop.time() > end:
                break
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._waiting) == before else 0
        self._boarding = None
        group = self._next_group()
        self._call()  # for those who did not fit
        return group

    def _next_group(self) -> list[_Write]:
        group: list[_Write] = []
        size = 0
        while self._waiting and len(group) < TOGETHER and size < TOGETHER_BYTES:
            write = self._waiting.popleft()
            if not write.done.done():  # its caller waits still
                group.append(write)
                size += len(write.value)
        return group

    def _arrived(self, task: asyncio.Task[None]) -> None:
        self._away.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a group of writes failed; each goes alone", bucket=self._bucket, exc_info=error)
        if self._boarding is task:  # cancelled before it left
            self._boarding = None
        self._call()

    async def _travel(self) -> None:
        if not (group := await self._board()):
            return
        revision = 0
        try:
            revision = await self._store(group)
        except (BusDown, BusTimeout, NoResponders):
            # Those behind it have waited already: they are not to wait for another group to fail.
            group += self._waiting
            self._waiting.clear()
        except (StoreRefused, KeyConflict, MessageTooLarge) as error:
            log.debug("a group of writes was not taken", bucket=self._bucket, writes=len(group), error=str(error))
        finally:
            for write in group:
                if not write.done.done():
                    write.done.set_result(revision)
                revision += bool(revision)

    async def _store(self, group: list[_Write]) -> int:
        """The revision of the first."""
        if len(group) == 1:
            (write,) = group
            return await self._kv.update(write.key, write.value, write.revision, ttl=write.ttl, timeout=PATIENCE_S)
        messages = [self._message(write) for write in group]
        return await self._jetstream.store_together(messages, timeout=PATIENCE_S) - len(group) + 1

    def _message(self, write: _Write) -> OutgoingMessage:
        headers = f"{EXPECTED}: {write.revision}\r\n"
        if write.ttl is not None:
            headers += f"{TTL}: {milliseconds(write.ttl)}\r\n"
        return OutgoingMessage(key_subject(self._bucket, write.key), write.value, headers.encode())
