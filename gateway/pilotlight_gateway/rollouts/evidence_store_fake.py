"""The `EvidenceStore` in memory, for tests."""

from __future__ import annotations

from pilotlight_core.bus.bus_errors import WrongRevision
from pilotlight_core.model.messages.logs import ComparedCalls
from pilotlight_gateway.judging.evidence import Evidence, decode_evidence, encode_evidence
from pilotlight_gateway.judging.usual.slow_limits import SlowLimits
from pilotlight_gateway.rollouts.evidence_store import ComparedPage, StoredEvidence


class MemoryEvidence:
    """Keeps bytes, as the bus does."""

    def __init__(self, *, page_size: int = 64) -> None:
        self.kept: dict[tuple[str, str], tuple[bytes, int]] = {}
        self.stream: list[ComparedCalls] = []
        self.page_size = page_size
        self.slow: list[SlowLimits] = []
        """What was written of when calls are slow."""

    async def read(self, tenant: str, app: str) -> StoredEvidence:
        found = self.kept.get((tenant, app))
        return StoredEvidence(None, 0) if found is None else StoredEvidence(decode_evidence(found[0]), found[1])

    async def write(self, tenant: str, app: str, evidence: Evidence, revision: int) -> int:
        if self.kept.get((tenant, app), (b"", 0))[1] != revision:
            raise WrongRevision("It has another revision.")
        self.kept[tenant, app] = (encode_evidence(evidence), revision + 1)
        return revision + 1

    async def write_limits(self, tenant: str, app: str, limits: SlowLimits) -> None:  # noqa: ARG002
        self.slow.append(limits)

    async def limits(self, tenant: str, app: str) -> SlowLimits | None:  # noqa: ARG002
        return self.slow[-1] if self.slow else None

    async def page(self, tenant: str, app: str, after: int) -> ComparedPage:
        own = [
            (seq, one)
            for seq, one in enumerate(self.stream, 1)
            if seq > after and (one.tenant, one.app) == (tenant, app)
        ]
        found = own[: self.page_size]
        return ComparedPage(found, found[-1][0] if found else after, len(own) <= self.page_size)

    async def last_place(self) -> int:
        return len(self.stream)
