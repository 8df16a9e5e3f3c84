"""Sampled calls of one tenant as they end: bytes of which the last are yet to be sent, and the first may be gone."""

from __future__ import annotations

from collections.abc import Mapping

from pilotlight_core.model.tracing.kept_call import BatchMates
from pilotlight_core.model.tracing.packed_calls import HEAD, length_at, packed_mates, unpacked
from pilotlight_core.model.tracing.sampled_call import MOST_OF_SHEET, SampledKind, SampledRecord, SampledSheet

FULL_BYTES = 2**16
"""What a node tells of a batch may be long, and a message is bounded."""


class KnownKind:
    """What calls have in common, and where that stands in the sheet that it was written to last."""

    def __init__(self, kind: SampledKind) -> None:
        self.kind = kind
        self.slow_ms: float = kind.slow_ms
        self.sheet = 0
        """By number, since it outlives them."""
        self.place = 0


class OpenSheet:
    """One of a tenant's, until it is full."""

    def __init__(self, tenant: str, number: int) -> None:
        """`number`: another one for each, from 1."""
        self.tenant = tenant
        self.number = number
        self.kinds: list[SampledKind] = []
        self.records = bytearray()
        self.count = 0
        """Calls that were ever written to it."""
        self._sent = self._sent_count = 0
        """Bytes and calls that were taken to be sent."""
        self._gone = self._gone_count = 0
        """Bytes and calls of which nobody is told any more."""

    @property
    def full(self) -> bool:
        return self.count >= MOST_OF_SHEET or len(self.records) >= FULL_BYTES

    @property
    def unsent(self) -> int:
        """Calls that are yet to be sent."""
        return self.count - self._sent_count

    @property
    def left(self) -> int:
        """Calls that can be told of."""
        return self.count - self._gone_count

    def write(
        self,
        known: KnownKind,
        call_id: str,
        arrived_ns: int,
        total_ms: float,
        stages: Mapping[str, float],
        ahead: int,
        mates: BatchMates,
    ) -> None:
        """Write a call to its end."""
        if known.sheet != self.number:
            known.sheet, known.place = self.number, len(self.kinds)
            self.kinds.append(known.kind)
        name, told = call_id.encode(), packed_mates(mates) if mates else b""
        self.records += HEAD.pack(
            known.place,
            len(name),
            len(told),
            ahead,
            arrived_ns,
            total_ms,
            stages["gateway"],
            stages["queue"],
            stages["start"],
            stages["transport"],
            stages["batch_wait"],
            stages["execute"],
        )
        self.records += name
        if told:
            self.records += told
        self.count += 1

    def take(self) -> SampledSheet:
        """What is yet to be sent; it is sent then."""
        taken = SampledSheet(tuple(self.kinds), self.unsent, bytes(self.records[self._sent :]))
        self._sent, self._sent_count = len(self.records), self.count
        return taken

    def drop_one(self) -> None:
        """Tell nobody of the oldest any more."""
        self._gone += length_at(self.records, self._gone)
        self._gone_count += 1

    def oldest(self) -> SampledRecord:
        """The oldest of which somebody is told."""
        end = self._gone + length_at(self.records, self._gone)
        return unpacked(self.kinds, self.records[:end], self._gone)[0]

    def newest_first(self) -> list[SampledRecord]:
        """The calls that can be told of."""
        return unpacked(self.kinds, self.records, self._gone)[::-1]

    def may_have(self, call_id: bytes) -> bool:
        """Whether to look for a call here: all that is here is a heap of bytes, which is soon searched."""
        return call_id in self.records
