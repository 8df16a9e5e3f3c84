"""What is stored of a tenant beside its blobs, its keys and its own record: the port, and its in-memory twin."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.bus import BusDown


class TenantTraces(Protocol):
    """Counts by kind. Both raise BusError, `erase` when some of them may be deleted: it can be repeated."""

    async def count(self, tenant: str) -> Counter[str]:
        """How many records of each kind there are; not of kinds that it takes long to look through."""
        ...

    async def erase(self, tenant: str) -> Counter[str]:
        """Delete all; how many of each kind there were."""
        ...


@dataclass(kw_only=True)
class MemoryTraces:
    """A `TenantTraces` in memory. While `fails` is set, it deletes a kind and raises BusDown."""

    kept: dict[str, Counter[str]] = field(default_factory=dict)
    fails: bool = False

    async def count(self, tenant: str) -> Counter[str]:
        return Counter(self.kept.get(tenant, Counter()))

    async def erase(self, tenant: str) -> Counter[str]:
        found = self.kept.pop(tenant, Counter[str]())
        if self.fails:
            kinds = sorted(found)[1:]
            self.kept[tenant] = Counter({kind: found[kind] for kind in kinds})
            raise BusDown("the bus is away")
        return found
