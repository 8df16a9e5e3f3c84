"""What a gateway says of a call to an engine: to its home, where its prompt likely is; to the guest, whose it is."""

from __future__ import annotations

import hashlib

from msgspec import UNSET

from pilotlight_core.model.engines.call_facts import CallFacts
from pilotlight_core.model.messages.call_affinity import CallAffinity, affinity_of
from pilotlight_core.model.spec import Priority, VersionRecord

RANKS: dict[str, int] = {Priority.BATCH: 0, Priority.STANDARD: 1, Priority.INTERACTIVE: 2}
"""`CallFacts.priority` by class."""


def engine_affinity(version: VersionRecord, tenant: str, arguments: bytes) -> CallAffinity | None:
    """None: `version` has no engine, the call no prompt, or it names an adapter that is none: homes remember names."""
    if (engine := version.spec.engine) is UNSET:
        return None
    affinity = affinity_of(tenant, arguments)
    if affinity is None or not affinity.adapter or affinity.adapter in engine.adapters:
        return affinity
    return None


def engine_facts(version: VersionRecord, tenant: str, weight: float, priority: str) -> CallFacts | None:
    """None: `version` has no engine. Its owner learns who is who among the callers, and none of their names."""
    if version.spec.engine is UNSET:
        return None
    who = hashlib.blake2b(f"{version.tenant}\0{tenant}".encode(), digest_size=16).hexdigest()
    return CallFacts(tenant=who, salt=who, weight=weight, priority=RANKS[priority])
