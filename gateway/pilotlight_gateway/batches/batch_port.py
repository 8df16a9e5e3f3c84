"""The port of the records of batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.bus import WrongRevision
from pilotlight_core.model.records.batches import BatchRecord

ChangeBatch = Callable[[BatchRecord], BatchRecord]


class BatchStore(Protocol):
    """Records of batches with compare-and-set.

    Every method raises BusError when the outcome is unknown.
    """

    async def create(self, record: BatchRecord) -> BatchRecord:
        """Store a new batch and return the stored record: an earlier one if the id is taken.

        Raises:
            Unavailable: `overloaded`, the bucket is full.
        """
        ...

    async def read(self, tenant: str, batch: str) -> tuple[BatchRecord, int] | None:
        """The record and its revision."""
        ...

    async def update(self, record: BatchRecord, revision: int) -> int:
        """Replace the record that has `revision`; returns the new revision. Finished batches expire after `keep_s`.

        Raises:
            WrongRevision: the record has another revision.
        """
        ...

    async def all(self, tenant: str) -> list[BatchRecord]: ...


@dataclass(kw_only=True)
class MemoryBatches:
    """An in-memory `BatchStore`."""

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
