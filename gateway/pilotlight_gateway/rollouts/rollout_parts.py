"""What endpoints of rollouts stand on, beside what all of the API does."""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_gateway.rollouts.evidence_store import EvidenceStore


@dataclass(frozen=True, kw_only=True)
class RolloutParts:
    """Whoever makes a gateway makes them."""

    store: EvidenceStore
