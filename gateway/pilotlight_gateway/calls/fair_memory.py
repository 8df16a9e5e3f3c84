"""A bounded memory that tenants share: when it is full, whoever has most in it loses its oldest.

So a tenant with few things keeps them however much others bring, and one that is alone has all of the room. All is
O(1): tenants stand in rows by how much they have, and the last row that is not empty is known.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from pilotlight_core.model.integrity import require

T = TypeVar("T")


class FairMemory(Generic[T]):
    """`room` things by tenant and name."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._size = 0
        # Ordered ones, since a plain dict walks over all that was removed at its head to find its first.
        self._things: dict[str, OrderedDict[str, T]] = {}
        """By tenant, each in the order in which they came; no tenant with none."""
        self._rows: dict[int, OrderedDict[str, None]] = {}
        """How many things -> the tenants that have so many; no empty row."""
        self._most = 0

    def __len__(self) -> int:
        return self._size

    def get(self, tenant: str, name: str) -> T | None:
        """What is kept of a tenant under `name`; None if nothing is."""
        things = self._things.get(tenant)
        return things.get(name) if things is not None else None

    def keep(self, tenant: str, name: str, thing: T) -> list[tuple[str, T]]:
        """Keep something under a new name; what had to go for it, with whose it was."""
        things = self._things.get(tenant)
        if things is None:
            things = self._things[tenant] = OrderedDict()
        things[name] = thing
        if self._size == self._room and len(things) > self._most:
            return [(tenant, things.popitem(last=False)[1])]  # it alone has most now: as before, but for the oldest
        self._size += 1
        self._moved(tenant, len(things) - 1, len(things))
        return [self._lose_one() for _ in range(self._size - self._room)]

    def _lose_one(self) -> tuple[str, T]:
        tenant = next(iter(self._rows[self._most]))
        things = self._things[tenant]
        _, thing = things.popitem(last=False)
        self._size -= 1
        if not things:
            del self._things[tenant]
        self._moved(tenant, len(things) + 1, len(things))
        return tenant, thing

    def _moved(self, tenant: str, was: int, now: int) -> None:
        if was:
            row = self._rows[was]
            del row[tenant]
            if not row:
                del self._rows[was]
        if now:
            row_now = self._rows.get(now)
            if row_now is None:
                row_now = self._rows[now] = OrderedDict()
            row_now[tenant] = None
        if now > self._most or self._most not in self._rows:
            self._most = now

    def check_integrity(self) -> None:
        """Raise AssertionError if parts of the state contradict each other."""
        sizes = {tenant: len(things) for tenant, things in self._things.items()}
        require(sum(sizes.values()) == self._size <= self._room, "the size is not the size")
        rows = {tenant: size for size, row in self._rows.items() for tenant in row}
        require(rows == sizes, "a tenant stands in the wrong row")
        require(self._most == max(sizes.values(), default=0), "the last row is not the last")
        require(all(self._rows.values()), "a row is empty")
