"""Group commit: concurrent compare-and-sets of one bucket, stored together.

Each write stays a compare-and-set on its own key, synced before it is confirmed. Writes of consecutive turns of the
loop, and those that wait for earlier groups, form one batch, which the server takes whole or not at all (JetStream's
atomic batches, ADR-50): one proposal to the cluster, one sync, one confirmation.

If a batch is refused, each of its writes is repeated alone and gets its own result. Keys with frequent conflicts
therefore do not belong here.
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

GROUPS_AT_ONCE = 2
"""One group gathers while the other is stored. More groups would be smaller, and no faster."""
QUIET_TURNS = 2
"""Turns of the loop without another write after which a group is sent. In a busy loop the writers that the last group
has just confirmed join, instead of waiting for the next one."""
MAX_TURNS = 16
GATHER_S = 0.01
"""A group is sent after this many seconds, or `MAX_TURNS` turns, at the latest."""
MAX_WRITES = 128
"""Writes in one group; a server takes 1,000."""
MAX_BYTES = 2**20
GROUP_TIMEOUT_S = 2.0
"""Seconds for a group; the rest of a write's time is for its repetition alone."""

log = structlog.get_logger(__name__)


class _Write(NamedTuple):
    key: str
    value: bytes
    revision: int
    ttl: float | None
    done: asyncio.Future[int]
    """Its revision; 0: it must be repeated alone."""


class GroupCommit:
    """The writes of this process to one bucket whose stream has `allow_atomic`."""

    def __init__(self, jetstream: JetStream, bucket: str, loop: asyncio.AbstractEventLoop) -> None:
        self._jetstream = jetstream
        self._bucket = bucket
        self._loop = loop
        self._kv = Kv(jetstream, bucket)
        self._waiting: deque[_Write] = deque()
        self._gathering: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def update(self, key: str, value: bytes, revision: int, *, ttl: float | None = None) -> int:
        """As `Kv.update`. If it is cancelled, the value may or may not be written.

        Raises:
            WrongRevision: if the key has another revision; also if the confirmation of this very write was lost.
            BusDown, BusTimeout, NoResponders: after 5 s.
            StoreRefused, MessageTooLarge.
        """
        until = self._loop.time() + TIMEOUT
        write = _Write(key, value, revision, ttl, self._loop.create_future())
        self._waiting.append(write)
        self._start_group()
        stored = await write.done
        left = max(TIMEOUT - GROUP_TIMEOUT_S, until - self._loop.time())
        return stored or await self._kv.update(key, value, revision, ttl=ttl, timeout=left)

    def _start_group(self) -> None:
        if self._waiting and self._gathering is None and len(self._running) < GROUPS_AT_ONCE:
            task = self._gathering = self._loop.create_task(self._commit())
            self._running.add(task)
            task.add_done_callback(self._on_done)

    async def _gather(self) -> list[_Write]:
        quiet, end = 0, self._loop.time() + GATHER_S
        for _ in range(MAX_TURNS):
            before = len(self._waiting)
            if before >= MAX_WRITES or quiet == QUIET_TURNS or self._loop.time() > end:
                break
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._waiting) == before else 0
        self._gathering = None
        group = self._next_group()
        self._start_group()  # for writes that did not fit
        return group

    def _next_group(self) -> list[_Write]:
        group: list[_Write] = []
        size = 0
        while self._waiting and len(group) < MAX_WRITES and size < MAX_BYTES:
            write = self._waiting.popleft()
            if not write.done.done():  # its caller still waits
                group.append(write)
                size += len(write.value)
        return group

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a group of writes failed; each goes alone", bucket=self._bucket, exc_info=error)
        if self._gathering is task:  # cancelled before it was sent
            self._gathering = None
        self._start_group()

    async def _commit(self) -> None:
        if not (group := await self._gather()):
            return
        revision = 0
        try:
            revision = await self._store(group)
        except (BusDown, BusTimeout, NoResponders):
            # The writes behind it have waited too: they need not wait for another group to fail.
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
        """Store the group; the revision of its first write."""
        if len(group) == 1:
            (write,) = group
            return await self._kv.update(write.key, write.value, write.revision, ttl=write.ttl, timeout=GROUP_TIMEOUT_S)
        messages = [self._message(write) for write in group]
        return await self._jetstream.store_together(messages, timeout=GROUP_TIMEOUT_S) - len(group) + 1

    def _message(self, write: _Write) -> OutgoingMessage:
        headers = f"{EXPECTED}: {write.revision}\r\n"
        if write.ttl is not None:
            headers += f"{TTL}: {milliseconds(write.ttl)}\r\n"
        return OutgoingMessage(key_subject(self._bucket, write.key), write.value, headers.encode())
