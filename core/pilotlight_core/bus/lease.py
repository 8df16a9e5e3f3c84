"""A lease: the right to act, for one holder at a time, with an epoch that fences earlier holders.

The key is in a bucket whose entries expire. The holder renews it by compare-and-set at a third of its time to live, and
has lost it if the key has another revision. `epoch` is the revision of the acquisition: it rises from holder to holder
and is constant over renewals, so receivers keep the highest and refuse lower ones. A holder acts only while `valid`: by
its own monotonic clock, from the instant before the last successful renewal was sent, less a margin. After a pause a
process therefore knows at once that it may not act, and the epoch fences what it sent.

The server forgets a key by its wall clock. If that is set ahead, a holder loses its lease and takes it again; if it is
set back, the key of a dead holder would stay until it is as late again. So whoever waits for a lease takes it as well
once it has seen a record stand unchanged for the whole time to live that is written in it, by its own monotonic clock:
its holder may not act any more since before that.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from types import TracebackType

import msgspec
import structlog

from pilotlight_core.bus.bus_errors import BusError, BusTimeout, WrongRevision
from pilotlight_core.bus.connection import BusConnection
from pilotlight_core.bus.jetstream import StreamMessage
from pilotlight_core.bus.streams import key_subject
from pilotlight_core.model.subjects import LEASE_BUCKET

log = structlog.get_logger(__name__)

TRY_EVERY_S = 0.25
"""Seconds between attempts while another process holds the lease; a release wakes the waiting ones at once."""
RETRY_AFTER_S = 0.1
RELEASE_TIMEOUT = 1.0


class LeaseRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    holder: str
    epoch: int = 0
    """0 in the acquisition, whose own revision is the epoch."""
    data: bytes = b""
    ttl: float = 0.0
    """Seconds for which it holds unless it is renewed; 0: its holder is older than this field."""


class LeaseHolder(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    epoch: int
    data: bytes = b""


def read_holder(value: bytes, revision: int) -> LeaseHolder:
    record = msgspec.msgpack.decode(value, type=LeaseRecord)
    return LeaseHolder(name=record.holder, epoch=record.epoch or revision, data=record.data)


MaySucceed = Callable[[LeaseHolder], Awaitable[bool]]
"""Whether a holder of the same name with other data may be replaced before its lease has expired. An exception ends
`acquire`."""


async def at_once(_: LeaseHolder) -> bool:
    """The default: a holder of the same name is an earlier run of the same process."""
    return True


class Lease:
    """The lease `key` for `holder`. `async with` acquires and releases it.

    The same holder name takes over at once, without waiting for the lease of the process's earlier run, which the new
    epoch fences. Where two processes may have one name by mistake, `data` identifies the process, and `may_succeed`
    decides whether the other one is gone. `ttl` is in seconds, at least 1.
    """

    def __init__(
        self,
        bus: BusConnection,
        key: str,
        holder: str,
        *,
        ttl: float = 3.0,
        data: bytes = b"",
        may_succeed: MaySucceed = at_once,
    ) -> None:
        if ttl < 1.0:
            raise ValueError(f"ttl={ttl}: the server counts whole seconds, so a lease lives at least 1 s")
        self._bus = bus
        self._kv = bus.kv(LEASE_BUCKET)
        self.key = key
        self.holder = holder
        self.ttl = ttl
        self._data = data
        self._may_succeed = may_succeed
        self._margin = min(0.5, ttl / 6)
        self._revision = 0
        self._valid_until = float("-inf")
        self._task: asyncio.Task[None] | None = None
        self._stood: tuple[int, float] = (0, 0.0)
        """The revision of another holder's record, and since when it has been seen to stand."""
        self.epoch = 0
        self.lost = asyncio.Event()
        """Set when the lease is lost without a release; `acquire` may be called again."""

    async def __aenter__(self) -> Lease:
        await self.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.release()

    def valid(self, at: float) -> bool:
        """Whether the holder may act at `at` (monotonic seconds)."""
        return at < self._valid_until

    async def acquire(self, timeout: float | None = None) -> int:
        """Wait for the lease; its epoch.

        Raises:
            BusTimeout: after `timeout` seconds.
            Exception: whatever `may_succeed` raises.
        """
        await self._stop()
        bell = asyncio.Event()
        ring = {key_subject(LEASE_BUCKET, self.key): bell.set}
        try:
            async with self._bus.listening(bells=ring), asyncio.timeout(timeout):
                while not await self._try_acquire():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(TRY_EVERY_S * random.uniform(0.8, 1.2)):
                            await bell.wait()
                    bell.clear()
        except TimeoutError:
            raise BusTimeout(f"The lease {self.key} could not be had within {timeout} s.") from None
        self.lost.clear()
        self._task = self._bus.spawn(self._keep())
        log.info("lease acquired", key=self.key, holder=self.holder, epoch=self.epoch)
        return self.epoch

    async def release(self) -> None:
        """Delete the key, so that another process can take the lease at once."""
        await self._stop()
        if not self.valid(time.monotonic()):
            return
        self._valid_until = float("-inf")
        with contextlib.suppress(BusError, WrongRevision, TimeoutError):
            async with asyncio.timeout(RELEASE_TIMEOUT):
                try:
                    await self._kv.delete(self.key, self._revision)
                except WrongRevision:
                    # The renewal that was just cancelled may have arrived.
                    record = await self._kv.read(self.key)
                    if record is not None and not record.gone and self._is_ours(record):
                        await self._kv.delete(self.key, record.seq)

    async def _try_acquire(self) -> bool:
        try:
            record = await self._kv.read(self.key)
            if record is not None and not record.gone and not await self._may_replace(record, time.monotonic()):
                return False
            asked_at = time.monotonic()
            value = msgspec.msgpack.encode(LeaseRecord(holder=self.holder, data=self._data, ttl=self.ttl))
            self._revision = await self._kv.update(
                self.key, value, record.seq if record is not None else 0, ttl=self.ttl, timeout=self.ttl / 2
            )
        except (WrongRevision, BusError):
            return False
        self.epoch = self._revision
        self._valid_until = asked_at + self.ttl - self._margin
        return self.valid(time.monotonic())

    async def _may_replace(self, record: StreamMessage, at: float) -> bool:
        is_new = self._stood[0] != record.seq
        if is_new:
            self._stood = record.seq, at
        stood_s = at - self._stood[1]
        try:
            known = msgspec.msgpack.decode(record.data, type=LeaseRecord)
        except msgspec.DecodeError:
            # Its holder renews it, even if its format is unknown here: a record that stands for a whole time to live
            # has no holder.
            if is_new:
                log.warning("a lease cannot be read; it is taken if nobody renews it", key=self.key, within=self.ttl)
            return stood_s >= self.ttl
        if known.ttl and stood_s >= known.ttl:
            return True
        holder = self._holder_of(record)
        return holder.name == self.holder and (holder.data == self._data or await self._may_succeed(holder))

    async def _keep(self) -> None:
        wait = self.ttl / 3
        while True:
            await asyncio.sleep(wait)
            try:
                await self._renew()
                wait = self.ttl / 3
            except WrongRevision:
                return self._lose("another holder took it")
            except BusError:
                if not self.valid(time.monotonic()):
                    return self._lose("it could not be renewed in time")
                wait = RETRY_AFTER_S

    async def _renew(self) -> None:
        asked_at = time.monotonic()
        value = msgspec.msgpack.encode(LeaseRecord(holder=self.holder, epoch=self.epoch, data=self._data, ttl=self.ttl))
        left_s = max(RETRY_AFTER_S, self._valid_until - asked_at)
        try:
            self._revision = await self._kv.update(
                self.key, value, self._revision, ttl=self.ttl, timeout=min(left_s, self.ttl / 3)
            )
        except WrongRevision:
            # An earlier renewal may have arrived although its reply did not.
            record = await self._kv.read(self.key)
            if record is None or record.gone or not self._is_ours(record):
                raise
            self._revision = record.seq
            raise BusTimeout("An earlier renewal had arrived.") from None
        self._valid_until = asked_at + self.ttl - self._margin

    def _is_ours(self, record: StreamMessage) -> bool:
        with contextlib.suppress(msgspec.DecodeError):
            return self._holder_of(record) == LeaseHolder(name=self.holder, epoch=self.epoch, data=self._data)
        return False

    def _holder_of(self, record: StreamMessage) -> LeaseHolder:
        return read_holder(record.data, record.seq)

    def _lose(self, why: str) -> None:
        self._valid_until = float("-inf")
        self.lost.set()
        log.warning("lease lost", key=self.key, holder=self.holder, epoch=self.epoch, why=why)

    async def _stop(self) -> None:
        if self._task is not None:
            await self._bus.end(self._task)
            self._task = None
