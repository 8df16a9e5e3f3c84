"""Each change is written into the audit log before it is made, and again with what came of it.

Nothing is changed that the log has not stored before. If a gateway dies in between, the log says that the change was
asked for, and not whether it was made.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec
import structlog
from starlette.responses import Response
from starlette.types import Scope

from pilotlight_core.model.api.audit_api import AuditEntry
from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.audit.audit_entries import repeated_fields
from pilotlight_gateway.audit.audit_log import AuditLog
from pilotlight_gateway.http.protocol.http_exchange import Exchange

log = structlog.get_logger(__name__)


class ChangeOperation(Protocol):
    """What an operation says of itself."""

    @property
    def name(self) -> str: ...
    @property
    def tells(self) -> tuple[str, ...]: ...


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
    failed: PilotlightError | None = None
    try:
        response = await change()
    except PilotlightError as error:
        failed = error
    if failed is not None:
        await _note(audit, entry, operation, exchange, failed.meaning.status, failed.wire_code)
        raise failed
    status = response.status_code if response is not None else exchange.status
    await _note(audit, entry, operation, exchange, status, "")
    return response


def _asked(operation: ChangeOperation, scope: Scope, exchange: Exchange, at: float) -> AuditEntry:
    target: dict[str, Any] = dict(scope.get("path_params", {}))
    principal, client = exchange.principal, scope.get("client")
    return AuditEntry(
        id=exchange.request_id, at=at, tenant=target.get("tenant", principal.tenant), by=principal.tenant,
        key=principal.key_id, address=client[0] if client else "", operation=operation.name, target=target,
    )  # fmt: skip


async def _note(
    audit: AuditLog, entry: AuditEntry, operation: ChangeOperation, exchange: Exchange, status: int, code: str
) -> None:
    """Write what came of it. The change stands: if the log is away by now, its entry stays open."""
    told = repeated_fields(exchange.asked, operation.tells)
    try:
        await audit.write(msgspec.structs.replace(entry, status=status, code=code, told=told))
    except PilotlightError as error:
        log.error("the audit log has an entry without an end", request_id=entry.id, error=error.detail)
