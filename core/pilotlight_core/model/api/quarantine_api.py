"""The answer of `GET /v1/usage/quarantine`: usage that nodes sent and that has no place in the ledger."""

from __future__ import annotations

import msgspec


class QuarantinedItem(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    at: float
    """Unix seconds at which the bus stored it."""
    node: str
    """Who sent it; "" if that was before subjects named nodes."""
    reason: str
    text: str
    """The beginning of what was sent, in printable ASCII."""


class QuarantineCount(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    reason: str
    events: int
    """Ever, also those that are not kept."""


class QuarantinePage(msgspec.Struct, frozen=True, kw_only=True):
    """The last kept items, the newest first, and the counts of all."""

    items: tuple[QuarantinedItem, ...]
    counts: tuple[QuarantineCount, ...]
