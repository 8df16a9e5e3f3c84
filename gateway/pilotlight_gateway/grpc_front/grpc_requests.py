"""One request over gRPC: who asks, how it counts, and how its errors are told."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import structlog

from pilotlight_core.model.errors import BadInput, PilotlightError, Unauthenticated
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.grpc_front.status_codes import status_of
from pilotlight_gateway.http.protocol.drain_gate import current_task
from pilotlight_gateway.http.protocol.http_exchange import new_request_id
from pilotlight_gateway.http.protocol.problem_answers import retry_after
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.limit_admission import Admission
from pilotlight_gateway.tenancy.auth import Authenticator, Principal

AUTHORIZATION = "authorization"
LONGEST_DETAIL = 1_000
"""Characters of an error: it travels in headers, whose bytes are limited."""

Context = Any
"""grpc.aio's ServicerContext; the package has no types."""

log = structlog.get_logger(__name__)


class GrpcRequest:
    """A request as its tenant's limits see it, and as the end of its key does."""

    def __init__(self, principal: Principal, arrived_at: float) -> None:
        self.principal = principal
        self.arrived_at = arrived_at
        self.request_id = new_request_id()
        self.call_id = ""
        self.admission: Admission | None = None
        self.version = ""
        self.called: VersionRecord | None = None
        self.call: PreparedCall | None = None
        self.usage: CallUsage | None = None
        self.revoked: PilotlightError | None = None
        self.task = current_task()

    def begin_call(self, call_id: str) -> None:
        self.call_id = self.request_id = call_id

    def revoke(self, error: PilotlightError) -> None:
        """End it with this error: its principal may no more."""
        self.revoked = error
        self.task.cancel()

    def was_revoked(self) -> PilotlightError | None:
        """The error, if `revoke` caused the cancellation that the task has caught, which is undone; else None."""
        return self.revoked if self.revoked is not None and self.task.uncancel() == 0 else None


def headers_of(context: Context) -> tuple[tuple[bytes, bytes], ...]:
    """The metadata that came with a request, as headers."""
    found = context.invocation_metadata() or ()
    return tuple((name.encode(), value.encode("latin-1", "replace")) for name, value in found if isinstance(value, str))


async def principal_of(context: Context, authenticator: Authenticator) -> Principal:
    """The caller, by the key or token in the metadata.

    Raises:
        Unauthenticated: there is no valid one. BadInput: there are several.
    """
    found = [value for name, value in context.invocation_metadata() or () if name == AUTHORIZATION]
    if len(found) > 1:
        raise BadInput(f"There are {len(found)} {AUTHORIZATION} entries: send one.", code="bad_request")
    if not found:
        raise Unauthenticated("There is no 'authorization' in the metadata: expected 'Bearer pl_live_…'.")
    shown = found[0].encode("latin-1", "replace") if isinstance(found[0], str) else bytes(found[0])
    return await authenticator.authenticate(shown)


def seconds_left(context: Context) -> float | None:
    """Until the client gives up; None: it waits."""
    left = context.time_remaining()
    return left if left is not None and math.isfinite(left) else None


@asynccontextmanager
async def report_errors(context: Context, request_id: Callable[[], str]) -> AsyncIterator[None]:
    """Tell the client what the block raises, as a status with the request's id."""
    failed: PilotlightError | None = None
    try:
        yield
    except PilotlightError as error:
        failed = error
    except (asyncio.CancelledError, grpc.aio.AbortError):
        raise
    except Exception:
        log.exception("a request over gRPC failed unexpectedly", request_id=request_id())
        failed = PilotlightError(code="internal")
    if failed is not None:
        await context.abort(status_of(failed), error_text(failed), _trailers(failed, request_id()))


def error_text(error: PilotlightError) -> str:
    """What is told of an error, in one line."""
    detail = error.detail if len(error.detail) <= LONGEST_DETAIL else error.detail[:LONGEST_DETAIL] + "…"
    return " ".join(detail.split())


def _trailers(error: PilotlightError, request_id: str) -> tuple[tuple[str, str], ...]:
    found = [("x-request-id", request_id), ("pilotlight-code", error.wire_code)]
    wait_s = retry_after(error)
    if wait_s is not None:
        found.append(("retry-after-ms", str(math.ceil(wait_s * 1000))))
    return tuple(found)
