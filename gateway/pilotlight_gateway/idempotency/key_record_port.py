"""Where the records of keys are kept: `bus_records.BusKeyRecords`, and in memory `memory_records.MemoryKeyRecords`."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from pilotlight_gateway.idempotency.key_record import CallOwner, FirstCall, StoredFirstCall


class Doorbell(Protocol):
    """Rings when a record may have changed."""

    async def wait(self, seconds: float) -> bool:
        """Return True when it rings, or False after `seconds`."""
        ...


class KeyRecords(Protocol):
    """Records with compare-and-set. Reads and claims raise BusError when it is not known what stands there."""

    async def read(self, place: str) -> StoredFirstCall | None:
        """What stands there now, as the store's leader has it."""
        ...

    async def claim(self, place: str, first: FirstCall, revision: int, ttl: float) -> int:
        """Write `first` where `revision` stands (0: nothing), for `ttl` seconds; its revision.

        Raises:
            KeyConflict: something else stands there.
            Unavailable: `overloaded`, there is no room.
            BusError: it may stand there or not; if it does, it is withdrawn as soon as the bus allows.
        """
        ...

    async def settle(self, place: str, first: FirstCall, revision: int, ttl: float) -> None:
        """Replace what was claimed as `revision`: now, or as soon as the bus allows. If another has it, it stays."""
        ...

    async def is_alive(self, owner: CallOwner) -> bool:
        """Whether that gateway process holds its lease."""
        ...

    def seems_alive(self, owner: CallOwner) -> bool:
        """The same as far as this process knows, at once and without asking anybody."""
        ...

    def watch(self, place: str) -> AbstractAsyncContextManager[Doorbell]:
        """Listen for changes of a record."""
        ...
