"""Changes from what was written of them: one record before, and one after with what came of it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from pilotlight_core.model.api.audit_api import UNKNOWN, AuditEntry, AuditList

MOST_TOLD = 1_024
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


class AuditFold:
    """Puts changes together from records, in the order in which they were stored; it keeps as many as are asked for."""

    def __init__(self, query: AuditQuery) -> None:
        self._query = query
        self._found: dict[str, AuditEntry] = {}
        self._left_out_at = -math.inf
        """When the last one began that was let go."""

    def add(self, record: AuditEntry) -> None:
        known = self._found.get(record.id)
        if not self._query.asks_for(record) or (known is None and record.at <= self._left_out_at):
            return
        if known is None or known.status == UNKNOWN:
            self._found[record.id] = record
        if len(self._found) > self._query.limit:
            oldest = self._found.pop(next(iter(self._found)))
            self._left_out_at = max(self._left_out_at, oldest.at)

    def changes(self) -> AuditList:
        """Those that were asked for, in the order in which they began."""
        return AuditList(
            entries=sorted(self._found.values(), key=lambda entry: entry.at), more=self._left_out_at >= 0.0
        )


def merged_entries(records: Iterable[AuditEntry], query: AuditQuery) -> AuditList:
    """The changes that are asked for, from all records."""
    fold = AuditFold(query)
    for record in records:
        fold.add(record)
    return fold.changes()


def repeated_fields(asked: msgspec.Struct | None, names: tuple[str, ...]) -> dict[str, Any]:
    """What an entry repeats of a request's body: these fields of it (`EVERY`: all), unless at their default."""
    if asked is None or not names:
        return {}
    told = {
        field.name: msgspec.to_builtins(value)
        for field in msgspec.structs.fields(asked)
        if (names == EVERY or field.name in names) and (value := getattr(asked, field.name)) != field.default
    }
    if len(msgspec.json.encode(told)) > MOST_TOLD:
        return dict.fromkeys(told, "…")
    return told
