"""An in-memory `KeyRecords`, for tests and services without a bus."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pilotlight_core.bus import BusError, KeyConflict, WrongRevision
from pilotlight_gateway.idempotency.key_record import CallOwner, FirstCall, StoredFirstCall


@dataclass(kw_only=True)
class MemoryKeyRecords:
    """Records that expire by `clock`; fields script failures."""

    clock: Callable[[], float] = time.monotonic
    gone: set[CallOwner] = field(default_factory=set)
    """Owners that count as dead."""
    error: BusError | None = None
    """Raised by reads and claims."""
    deaf: bool = False
    """Drops what is settled, as if the gateway had stopped before."""
    reads: int = 0
    glances: int = 0
    """Calls of `seems_alive`."""
    _kept: dict[str, tuple[FirstCall, int, float]] = field(default_factory=dict)
    _revision: int = 0
    _bells: set[asyncio.Event] = field(default_factory=set)

    async def read(self, place: str) -> StoredFirstCall | None:
        self._may_fail()
        self.reads += 1
        first, revision, until = self._kept.get(place, (None, 0, 0.0))
        return StoredFirstCall(first, revision) if first is not None and self.clock() < until else None

    async def claim(self, place: str, first: FirstCall, revision: int, ttl: float) -> int:
        self._may_fail()
        return self._write(place, first, revision, ttl)

    async def settle(self, place: str, first: FirstCall, revision: int, ttl: float) -> None:
        if not self.deaf:
            with contextlib.suppress(KeyConflict):
                self._write(place, first, revision, ttl)

    async def is_alive(self, owner: CallOwner) -> bool:
        return owner not in self.gone

    def seems_alive(self, owner: CallOwner) -> bool:
        self.glances += 1
        return owner not in self.gone

    @asynccontextmanager
    async def watch(self, place: str) -> AsyncIterator[MemoryDoorbell]:  # noqa: ARG002 - every bell rings at every change
        event = asyncio.Event()
        self._bells.add(event)
        try:
            yield MemoryDoorbell(event)
        finally:
            self._bells.discard(event)

    def _may_fail(self) -> None:
        if self.error is not None:
            raise self.error

    def _write(self, place: str, first: FirstCall, revision: int, ttl: float) -> int:
        _, present, until = self._kept.get(place, (None, 0, 0.0))
        if (present if self.clock() < until else 0) != revision:
            raise WrongRevision(f"{place} was changed by somebody else.")
        self._revision += 1
        self._kept[place] = (first, self._revision, self.clock() + ttl)
        for bell in self._bells:
            bell.set()
        return self._revision


class MemoryDoorbell:
    """A `Doorbell` that rings at every change."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    async def wait(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        rang = self._event.is_set()
        self._event.clear()
        return rang
