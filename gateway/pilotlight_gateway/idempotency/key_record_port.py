"""The port of the records of keys; `bus_key_records` and `memory_key_records` implement it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from pilotlight_gateway.idempotency.key_record import CallOwner, FirstCall, StoredFirstCall


class Doorbell(Protocol):
    """Rings when a record may have changed."""

    async def wait(self, seconds: float) -> bool:
        """Wait for a ring; False if there is none within `seconds`."""
        ...


class KeyRecords(Protocol):
    """Records by `place` (see `place_of`), with compare-and-set. Reads and claims raise BusError."""

    async def read(self, place: str) -> StoredFirstCall | None:
        """The record as the store's leader has it; None if there is none."""
        ...

    async def claim(self, place: str, first: FirstCall, revision: int, ttl: float) -> int:
        """Write `first` over `revision` (0: none), for `ttl` seconds; returns the new revision.

        Raises:
            KeyConflict: the record has another revision.
            Unavailable: `overloaded`, the bucket is full.
            BusError: the outcome is unknown; a stored claim is withdrawn when the bus allows.
        """
        ...

    async def settle(self, place: str, first: FirstCall, revision: int, ttl: float) -> None:
        """Replace the claim of `revision`, now or when the bus allows, unless the record has changed."""
        ...

    async def is_alive(self, owner: CallOwner) -> bool:
        """Whether the gateway process holds its lease."""
        ...

    def seems_alive(self, owner: CallOwner) -> bool:
        """`is_alive` from this process's memory."""
        ...

    def watch(self, place: str) -> AbstractAsyncContextManager[Doorbell]: ...
