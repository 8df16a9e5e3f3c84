"""Changes from what was written of them: one record before, and one after with what came of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from pilotlight_core.model.api.audit_api import UNKNOWN, AuditEntry, AuditList

MOST_TOLD = 4_096
"""Bytes of what an entry repeats of a body; the names alone are kept of a longer one."""


EVERY = ("*",)
"""The fields that an entry repeats of a body, if it repeats all."""


@dataclass(frozen=True, kw_only=True)
class AuditQuery:
    """The last `limit` changes since a unix second; empty fields stand for all."""

    tenant: str = ""
    since: float = 0.0
    limit: int = 100
    operation: str = ""
    key: str = ""

    def asks_for(self, entry: AuditEntry) -> bool:
        return (
            entry.at >= self.since
            and self.tenant in ("", entry.tenant)
            and self.operation in ("", entry.operation)
            and self.key in ("", entry.key)
        )


def merged_entries(records: Iterable[AuditEntry], query: AuditQuery) -> AuditList:
    """The changes that are asked for, in the order in which they began, from records in the order in which they were
    stored.
    """
    found: dict[str, AuditEntry] = {}
    for record in records:
        known = found.get(record.id)
        if known is None or known.status == UNKNOWN:
            found[record.id] = record
    asked = sorted((entry for entry in found.values() if query.asks_for(entry)), key=lambda entry: entry.at)
    return AuditList(entries=asked[-query.limit :], more=len(asked) > query.limit)


def repeated_fields(asked: msgspec.Struct | None, names: tuple[str, ...]) -> dict[str, Any]:
    """What an entry repeats of a request's body: these fields of it (`EVERY`: all), where they say something."""
    if asked is None or not names:
        return {}
    values: dict[str, Any] = msgspec.to_builtins(asked)
    told = {
        name: value
        for name, value in values.items()
        if (names == EVERY or name in names) and value not in (None, "", [], {})
    }
    if len(msgspec.json.encode(told)) > MOST_TOLD:
        return dict.fromkeys(told, "…")
    return told
