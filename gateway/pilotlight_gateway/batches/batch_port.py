"""Where batches are kept: the verbs, and the fake that tests use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.bus import WrongRevision
from pilotlight_core.model.records.batches import BatchRecord

ChangeBatch = Callable[[BatchRecord], BatchRecord]


class BatchStore(Protocol):
    """Records with compare-and-set. All verbs raise BusError when it is not known what stands there."""

    async def create(self, record: BatchRecord) -> BatchRecord:
        """Store a new batch; what stands there then: itself, or the one that was there before.

        Raises:
            Unavailable: `overloaded`, there is no room.
        """
        ...

    async def read(self, tenant: str, batch: str) -> tuple[BatchRecord, int] | None:
        """What stands there, and its revision."""
        ...

    async def update(self, record: BatchRecord, revision: int) -> int:
        """Replace what has `revision`; the new one. One that is over is forgotten some time after `keep_s`.

        Raises:
            WrongRevision: something else stands there.
        """
        ...

    async def all(self, tenant: str) -> list[BatchRecord]:
        """The tenant's."""
        ...


@dataclass(kw_only=True)
class MemoryBatches:
    """Compare-and-set over a dictionary."""

    kept: dict[str, tuple[BatchRecord, int]] = field(default_factory=dict)
    writes: int = 0

    async def create(self, record: BatchRecord) -> BatchRecord:
        if record.key not in self.kept:
            self._write(record)
        return self.kept[record.key][0]

    async def read(self, tenant: str, batch: str) -> tuple[BatchRecord, int] | None:
        return self.kept.get(f"{tenant}.{batch}")

    async def update(self, record: BatchRecord, revision: int) -> int:
        if self.kept[record.key][1] != revision:
            raise WrongRevision(f"{record.key} was changed by somebody else.")
        return self._write(record)

    async def all(self, tenant: str) -> list[BatchRecord]:
        return [record for record, _ in self.kept.values() if record.tenant == tenant]

    def _write(self, record: BatchRecord) -> int:
        self.writes += 1
        self.kept[record.key] = (record, self.writes)
        return self.writes
