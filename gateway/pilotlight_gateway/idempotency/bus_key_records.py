"""The records of idempotency keys, in a bucket whose entries expire."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusError, KeyConflict, StoreRefused, read_holder
from pilotlight_core.bus.streams import key_subject
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.subjects import IDEMPOTENCY_BUCKET, LEASE_BUCKET
from pilotlight_gateway.idempotency.key_record import CallOwner, FirstCall, FirstCallState, StoredFirstCall, voided

SETTLE_S = 2.0
"""How long an answer waits until it is stored; a late one is stored afterwards."""
PAUSE_S = 1.0
LATE_AT_MOST = 256
"""Pending writes, of 64 MiB at most. Further calls count as lost when their time is over."""
VOID_S = 2.0
ECHOES_S = (0.005, 0.02, 0.08, 0.32, 1.28)
"""A message may precede its storage, so a doorbell rings again after these pauses."""

log = structlog.get_logger(__name__)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(FirstCall)


class BusKeyRecords:
    """The `KeyRecords` over the bus."""

    def __init__(self, bus: Bus, lives: Callable[[CallOwner], bool] = lambda _: True) -> None:
        """`lives` says from memory whether a gateway holds its lease; True if unknown."""
        self._bus = bus
        self._lives = lives
        self._kv = bus.kv(IDEMPOTENCY_BUCKET)
        self._leases = bus.kv(LEASE_BUCKET)
        self._late = 0

    async def read(self, place: str) -> StoredFirstCall | None:
        record = await self._kv.read(place)
        if record is None:
            return None
        return StoredFirstCall(None if record.gone else _decoder.decode(record.data), record.seq)

    async def claim(self, place: str, first: FirstCall, revision: int, ttl: float) -> int:
        try:
            return await self._kv.update(place, _encoder.encode(first), revision, ttl=ttl)
        except StoreRefused as error:
            raise _no_room(error) from None
        except BusError:
            self._later(self._withdraw(place, first))
            raise

    async def settle(self, place: str, first: FirstCall, revision: int, ttl: float) -> None:
        try:
            await self._write(place, first, revision, ttl)
        except StoreRefused as error:
            log.error("an answer is not remembered", call=first.call_id, error=str(error))
        except BusError:
            self._later(self._retry_write(place, first, revision, ttl))

    async def is_alive(self, owner: CallOwner) -> bool:
        entry = await self._leases.get(f"gateway.{owner.name}")
        with contextlib.suppress(msgspec.DecodeError):  # an unreadable holder is not this owner
            return entry is not None and read_holder(*entry).data.decode(errors="replace") == owner.instance
        return False

    def seems_alive(self, owner: CallOwner) -> bool:
        return self._lives(owner)

    @asynccontextmanager
    async def watch(self, place: str) -> AsyncIterator[BusDoorbell]:
        """See `KeyRecords`. Rings after a reconnect for changes meanwhile."""
        bell = BusDoorbell()
        bells = {key_subject(IDEMPOTENCY_BUCKET, place): bell.ring}
        async with self._bus.listening(bells=bells, reconnected=bell.reconnected):
            yield bell

    async def _write(self, place: str, first: FirstCall, revision: int, ttl: float) -> None:
        ttl = VOID_S if first.stage is FirstCallState.VOID else ttl
        with contextlib.suppress(KeyConflict):  # another request has the key, or an earlier write of ours arrived
            await self._kv.update(place, _encoder.encode(first), revision, ttl=ttl, timeout=SETTLE_S)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        if self._late >= LATE_AT_MOST:
            work.close()
            log.warning("too many records wait for the bus: one is given up")
            return
        self._late += 1
        self._bus.spawn(work).add_done_callback(self._one_less)

    def _one_less(self, _: asyncio.Task[None]) -> None:
        self._late -= 1

    async def _retry_write(self, place: str, first: FirstCall, revision: int, ttl: float) -> None:
        while time.time() < first.ends_at:
            await asyncio.sleep(PAUSE_S)
            with contextlib.suppress(BusError):
                await self._write(place, first, revision, ttl)
                return

    async def _withdraw(self, place: str, first: FirstCall) -> None:
        """Void an unconfirmed claim, whose call does not run."""
        while time.time() < first.ends_at:
            await asyncio.sleep(PAUSE_S)
            with contextlib.suppress(BusError):
                found = await self.read(place)
                if found is not None and found.first == first:
                    await self._write(place, voided(first), found.revision, VOID_S)
                return


def _no_room(error: StoreRefused) -> Unavailable:
    log.error("a key cannot be remembered", error=str(error))
    return Unavailable("The platform's room for idempotency keys is used up.", code="overloaded", retry_after=60.0)


class BusDoorbell:
    """Rings when a record changes, and after the pauses of ECHOES_S."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._echoes: tuple[float, ...] = ()

    def ring(self) -> None:
        self._event.set()

    async def reconnected(self) -> None:
        """Ring, since changes may have been missed."""
        self.ring()

    async def wait(self, seconds: float) -> bool:
        """See `Doorbell`."""
        echo = self._echoes[0] if self._echoes else seconds
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(echo, seconds)):
                await self._event.wait()
                self._event.clear()
                self._echoes = ECHOES_S[1:]
            await asyncio.sleep(min(ECHOES_S[0], seconds))
            return True
        if self._echoes and echo <= seconds:
            self._echoes = self._echoes[1:]
            return True
        return False
