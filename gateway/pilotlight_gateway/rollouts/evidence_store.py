"""What the judge has folded of each rollout, with its place in the stream, as the bus keeps it."""

from __future__ import annotations

from typing import Protocol

import msgspec
import structlog

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.logs import ComparedCalls
from pilotlight_core.model.messages.wire import decode
from pilotlight_gateway.judging.evidence import Evidence

KEPT_S = 30 * 86_400.0
"""After its last change."""
LARGEST = 900_000
"""Bytes: a value of the bus is a megabyte at most."""

log = structlog.get_logger(__name__)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Evidence)


class StoredEvidence(msgspec.Struct, frozen=True):
    evidence: Evidence
    revision: int
    """Under which it is replaced; 0: it is not stored yet."""


class EvidenceStore(Protocol):
    """Keeps evidence, and reads what is to be folded."""

    async def read(self, tenant: str, app: str) -> StoredEvidence | None:
        """What is kept of an app's last rollout; None: nothing that can be read."""
        ...

    async def write(self, tenant: str, app: str, evidence: Evidence, revision: int) -> int:
        """Replace what is at `revision`; the revision of now. Raises KeyConflict: somebody else has."""
        ...

    async def messages(self, tenant: str, app: str, after: int) -> list[tuple[int, ComparedCalls]]:
        """The next messages behind a place in the stream, each with its own."""
        ...

    async def last_place(self) -> int:
        """The place of the stream's last message."""
        ...


class BusEvidence:
    """The `EvidenceStore` over the bus."""

    def __init__(self, bus: Bus, *, region: str) -> None:
        self._bus = bus
        self._kv = bus.kv(subjects.EVIDENCE_BUCKET)
        self._region = region

    async def read(self, tenant: str, app: str) -> StoredEvidence | None:
        entry = await self._kv.get(f"{tenant}.{app}")
        if entry is None:
            return None
        try:
            return StoredEvidence(_decoder.decode(entry.value), entry.revision)
        except msgspec.DecodeError as error:
            log.warning("the evidence of a rollout cannot be read", tenant=tenant, app=app, error=str(error))
            return None

    async def write(self, tenant: str, app: str, evidence: Evidence, revision: int) -> int:
        data = _encoder.encode(evidence)
        if len(data) > LARGEST:
            evidence.baselines.settle()
            data = _encoder.encode(evidence)
        key = f"{tenant}.{app}"
        if revision:
            return await self._kv.update(key, data, revision, ttl=KEPT_S)
        return await self._kv.create(key, data, ttl=KEPT_S)

    async def messages(self, tenant: str, app: str, after: int) -> list[tuple[int, ComparedCalls]]:
        subject = subjects.compared(self._region, tenant, app)
        page = await self._bus.jetstream.page(subjects.COMPARED_STREAM, subject, after + 1)
        found = []
        for record in page.records:
            try:
                message = decode(record.data)
            except msgspec.DecodeError:
                continue
            if isinstance(message, ComparedCalls):
                found.append((record.seq, message))
        return found

    async def last_place(self) -> int:
        return await self._bus.jetstream.last_sequence(subjects.COMPARED_STREAM)


class MemoryEvidence:
    """The fake for tests."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], tuple[bytes, int]] = {}
        self.stream: list[tuple[str, str, ComparedCalls]] = []

    async def read(self, tenant: str, app: str) -> StoredEvidence | None:
        found = self.kept.get((tenant, app))
        return StoredEvidence(_decoder.decode(found[0]), found[1]) if found is not None else None

    async def write(self, tenant: str, app: str, evidence: Evidence, revision: int) -> int:
        self.kept[tenant, app] = (_encoder.encode(evidence), revision + 1)
        return revision + 1

    async def messages(self, tenant: str, app: str, after: int) -> list[tuple[int, ComparedCalls]]:
        numbered = enumerate(self.stream, start=1)
        return [(seq, each[2]) for seq, each in numbered if seq > after and each[:2] == (tenant, app)]

    async def last_place(self) -> int:
        return len(self.stream)
