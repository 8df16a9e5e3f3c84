"""Each change is written into the audit log before it is made, and again with what came of it.

Nothing is changed that the log has not stored before. If a gateway dies in between, the log says that the change was
asked for, and not whether it was made.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from pilotlight_core.model.api.audit_api import AuditEntry
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.ids import NAME
from pilotlight_gateway.audit.audit_entries import repeated_fields
from pilotlight_gateway.audit.audit_log import AuditLog
from pilotlight_gateway.http.protocol.http_exchange import Exchange

CREATED = 201
LONGEST_TARGET = 128
"""Characters that an entry repeats of a part of a path."""
INTERNAL = 500
KEY = re.compile(r"pl_[a-z]+_")
"""Begins an API key, which somebody may have put where its id belongs."""


class NamedParameter(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def where(self) -> str: ...


class ChangeOperation(Protocol):
    """What an operation says of itself."""

    @property
    def name(self) -> str: ...
    @property
    def tells(self) -> tuple[str, ...]: ...
    @property
    def parameters(self) -> Sequence[NamedParameter]: ...


async def make_audited(
    audit: AuditLog,
    operation: ChangeOperation,
    scope: Scope,
    exchange: Exchange,
    change: Callable[[], Awaitable[Response | None]],
    wall: Callable[[], float] = time.time,
) -> Response | None:
    """Make a change that the log knows of; its answer. `wall` is unix seconds.

    Raises:
        Unavailable: the log cannot be written; nothing was changed.
        PilotlightError: what the change raised.
    """
    entry = _asked(operation, scope, exchange, wall())
    await audit.write(entry)
    response: Response | None = None
    failed: Exception | None = None
    try:
        response = await change()
    except Exception as error:  # noqa: BLE001 - it is raised again
        failed = error
    told = repeated_fields(exchange.asked, operation.tells) | entry.told
    if failed is not None:
        status, code = INTERNAL, "internal"
        if isinstance(failed, PilotlightError):
            status, code = failed.meaning.status, failed.wire_code
        audit.note(msgspec.structs.replace(entry, status=status, code=code, told=told))
        raise failed
    status = response.status_code if response is not None else exchange.status
    audit.note(msgspec.structs.replace(entry, status=status, told=told | _made(response)))
    return response


def _asked(operation: ChangeOperation, scope: Scope, exchange: Exchange, at: float) -> AuditEntry:
    path: dict[str, Any] = scope.get("path_params", {})
    principal, client, named = exchange.principal, scope.get("client"), str(path.get("tenant", ""))
    # What others than operators say of another tenant is no word about it.
    tenant = named if principal.operator and NAME.fullmatch(named) else principal.tenant
    query = Request(scope).query_params
    asked = [each.name for each in operation.parameters if each.where == "query" and each.name in query]
    return AuditEntry(
        id=exchange.request_id, at=at, tenant=tenant, by=principal.tenant, key=principal.key_id,
        address=client[0] if client else "", operation=operation.name,
        target={name: _shown(str(value)) for name, value in path.items()},
        told={name: _shown(query[name]) for name in asked},
        subject=principal.origin.subject if principal.origin is not None else "",
        break_glass=principal.break_glass,
    )  # fmt: skip


def _shown(text: str) -> str:
    if KEY.match(text):
        return "pl_…"
    return text if len(text) <= LONGEST_TARGET else f"{text[:LONGEST_TARGET]}…"


def _made(response: Response | None) -> dict[str, str]:
    """The id of what was made: by it later entries are understood."""
    if response is None or response.status_code != CREATED:
        return {}
    try:
        made = msgspec.json.decode(response.body, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
    return {"made": made["id"]} if isinstance(made.get("id"), str) else {}
