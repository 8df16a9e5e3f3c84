"""When other gateways' leases were last renewed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from pilotlight_core.bus import Bus, KvEntry
from pilotlight_core.bus.lease import read_holder
from pilotlight_core.model import subjects


class LeaseWatch:
    """When each gateway's lease was last renewed, to estimate when another gateway takes over."""

    def __init__(self, bus: Bus, clock: Callable[[], float]) -> None:
        self._mirror = bus.mirror(subjects.LEASE_BUCKET, "gateway.")
        self._clock = clock
        self._seen: dict[str, tuple[str, float]] = {}
        """Lease -> process, and instant of the renewal."""

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        self._mirror.on_change.append(self._changed)
        async with self._mirror:
            yield

    def of(self, gateway: str) -> float | None:
        """When the lease of a process was last renewed; None if unknown."""
        return next((at for process, at in self._seen.values() if process == gateway), None)

    def _changed(self, key: str, entry: KvEntry | None) -> None:
        self._seen.pop(key, None)
        with contextlib.suppress(msgspec.DecodeError):  # an unreadable record renews no lease
            if entry is not None:
                process = read_holder(entry.value, entry.revision).data.decode(errors="replace")
                self._seen[key] = process, self._clock()
