"""Which documents there are of a version, by the digests of their blobs."""

from __future__ import annotations

import msgspec


class EvidenceInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Beside a version's record. All but `statement` are named in that too, which the platform has signed."""

    statement: str
    """The envelope with the version's provenance (`supply.provenance`)."""
    sbom: str
    """Its bill of materials (`supply.sbom`)."""
    verdict: str
    """What policies said of it at its deploy (`supply.findings`)."""
    signatures: dict[str, str] = {}
    """What its tenant has signed of it: `code` or an artifact's name, and the signature."""

    @property
    def digests(self) -> frozenset[str]:
        """The blobs that the version needs."""
        return frozenset((self.statement, self.sbom, self.verdict, *self.signatures.values()))
