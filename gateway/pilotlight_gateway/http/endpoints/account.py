"""Calls of a tenant, and their receipts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.errors import NotFound, UnknownCall
from pilotlight_core.model.ids import CALL_ID, CLIENT_CALL_ID
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.http.endpoints.jobs import JobServices, show_job
from pilotlight_gateway.http.protocol.api_operations import json_answer, principal_of
from pilotlight_gateway.ledger.ledger_reader import LedgerReader
from pilotlight_gateway.tenancy.registry_port import RegistryPort


@dataclass(frozen=True, kw_only=True)
class AccountServices:
    """The ports of these endpoints."""

    ledger: LedgerReader
    registry: RegistryPort
    calls: CallPort
    jobs: JobServices


async def show_call(request: Request, services: AccountServices) -> Response | None:
    """`GET /v1/calls/{id}`, of a job or a live call."""
    tenant, call = principal_of(request).tenant, _call_id(request)
    if (job := await services.jobs.jobs.find(tenant, call)) is not None:
        return await show_job(request, services.jobs, job)
    return json_answer(await services.calls.status(tenant, call))


async def show_receipt(request: Request, services: AccountServices) -> Response:
    """`GET /v1/calls/{id}/receipt`."""
    tenant, call = principal_of(request).tenant, _call_id(request)
    if (receipt := await asyncio.to_thread(services.ledger.receipt, tenant, call)) is None:
        when = "It comes some seconds after the call, and is kept for 100 days."
        raise NotFound(f"There is no receipt of {call}. {when}")
    refs = {line.version: known.ref for line in receipt.lines if (known := services.registry.version(line.version))}
    lines = tuple(structs.replace(line, version=refs.get(line.version, line.version)) for line in receipt.lines)
    return json_answer(structs.replace(receipt, lines=lines))


async def cancel_call(request: Request, services: AccountServices) -> Response:
    """`DELETE /v1/calls/{id}`."""
    tenant, call = principal_of(request).tenant, _call_id(request)
    if (ended := await services.jobs.jobs.cancel(tenant, call)) is not None:
        return json_answer({"id": ended[0].id, "cancelled": ended[1]}, status=202)
    alive = await services.calls.cancel(tenant, call)
    return json_answer({"id": call, "cancelled": alive}, status=202)


def _call_id(request: Request) -> str:
    call_id: str = request.path_params["id"]
    if not CALL_ID.fullmatch(call_id) and not CLIENT_CALL_ID.fullmatch(call_id):
        expected = "call_… as the platform gave it, or cid_… with 8 to 60 characters"
        raise UnknownCall(f"{call_id[:100]!r} is not a call's id: expected {expected}.")
    return call_id
