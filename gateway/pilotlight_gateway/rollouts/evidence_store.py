"""What the judge has folded of each rollout, with its place in the stream, as the bus keeps it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import msgspec
import structlog

from pilotlight_core.bus import Bus, NewValue
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.logs import ComparedCalls
from pilotlight_core.model.messages.wire import decode
from pilotlight_gateway.judging.evidence import Evidence, decode_evidence, encode_evidence
from pilotlight_gateway.judging.usual.slow_limits import SlowLimits

KEPT_S = 30 * 86_400.0
"""After its last change."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(SlowLimits)

log = structlog.get_logger(__name__)


class StoredEvidence(NamedTuple):
    evidence: Evidence | None
    """None: there is none that can be read here."""
    revision: int
    """Under which it is replaced; 0: nothing is there."""


class ComparedPage(NamedTuple):
    """Messages of one app, in the order of the stream."""

    messages: list[tuple[int, ComparedCalls]]
    last: int
    """The place behind which the next page begins."""
    is_last: bool


class EvidenceStore(Protocol):
    """Keeps evidence, and reads what is to be folded."""

    async def read(self, tenant: str, app: str) -> StoredEvidence:
        """What is kept of an app's last rollout."""
        ...

    async def write(self, tenant: str, app: str, evidence: Evidence, revision: int) -> int:
        """Replace what is at `revision`; the revision of now. Raises KeyConflict: somebody else has."""
        ...

    async def write_limits(self, tenant: str, app: str, limits: SlowLimits) -> None:
        """Let gateways know from when on calls are slow."""
        ...

    async def limits(self, tenant: str, app: str) -> SlowLimits | None:
        """What was written last of that; None: nothing that can be read here."""
        ...

    async def page(self, tenant: str, app: str, after: int) -> ComparedPage:
        """The next messages behind a place in the stream."""
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

    async def read(self, tenant: str, app: str) -> StoredEvidence:
        entry = await self._kv.get(f"{tenant}.{app}")
        if entry is None:
            return StoredEvidence(None, 0)
        return StoredEvidence(decode_evidence(entry.value), entry.revision)

    async def write(self, tenant: str, app: str, evidence: Evidence, revision: int) -> int:
        key, data = f"{tenant}.{app}", encode_evidence(evidence)
        if revision:
            return await self._kv.update(key, data, revision, ttl=KEPT_S)
        return await self._kv.create(key, data, ttl=KEPT_S)

    async def write_limits(self, tenant: str, app: str, limits: SlowLimits) -> None:
        data = _encoder.encode(limits)
        await self._kv.change(_limits_key(tenant, app), lambda _: NewValue(data, ttl=KEPT_S))

    async def limits(self, tenant: str, app: str) -> SlowLimits | None:
        entry = await self._kv.get(_limits_key(tenant, app))
        if entry is None:
            return None
        try:
            return _decoder.decode(entry.value)
        except msgspec.DecodeError:
            return None

    async def page(self, tenant: str, app: str, after: int) -> ComparedPage:
        subject = subjects.compared(self._region, tenant, app)
        page = await self._bus.jetstream.page(subjects.COMPARED_STREAM, subject, after + 1)
        found = []
        for record in page.records:
            try:
                message = decode(record.data)
            except msgspec.DecodeError as error:
                log.error("compared calls cannot be read", seq=record.seq, error=str(error))
                continue
            if isinstance(message, ComparedCalls):
                found.append((record.seq, message))
        last = page.records[-1].seq if page.records else after
        return ComparedPage(found, last, not page.pending)

    async def last_place(self) -> int:
        return await self._bus.jetstream.last_sequence(subjects.COMPARED_STREAM)


def _limits_key(tenant: str, app: str) -> str:
    return f"{tenant}.{app}.slow"
