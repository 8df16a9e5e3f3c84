"""Calls that failed, were slow or were sampled: their list, and why one of them was slow or refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.seeing.trace_api import CallExplanation, KeptCallList
from pilotlight_core.model.errors import BadInput, UnknownCall
from pilotlight_core.model.ids import CALL_ID, FUNCTION_PATTERN
from pilotlight_core.model.messages.scheduling import AskKept
from pilotlight_core.model.tracing.kept_call import KeptWhy
from pilotlight_gateway.http.protocol.api_operations import Operation, Parameter, count_of, json_answer, principal_of
from pilotlight_gateway.jobs.job_service import JobService
from pilotlight_gateway.tenancy.shown_names import shown_gateways
from pilotlight_gateway.traces.explained_calls import explanation_of, row_of
from pilotlight_gateway.traces.traced_calls import FindKept

REQUEST_ID = re.compile(r"req_[0-9a-f]{19,32}")
DEFAULT_LIMIT, MOST_LISTED = 50, 200
NOT_KEPT = (
    "calls are kept for a while when they fail, are slower than their function's slo, are sampled, or have a "
    "traceparent whose sampled flag is set, and no longer than their gateway runs."
)


@dataclass(frozen=True, kw_only=True)
class KeptCallServices:
    """The ports of these endpoints."""

    find_kept: FindKept
    jobs: JobService


async def list_kept_calls(request: Request, services: KeptCallServices) -> Response:
    """`GET /v1/calls`."""
    principal, asked = principal_of(request), request.query_params
    tenant, operator = principal.tenant, principal.operator
    kept, function = asked.get("kept"), asked.get("function")
    if kept is not None and kept not in set(KeptWhy):
        raise BadInput(f"kept: expected one of {', '.join(KeptWhy)}, not {kept[:40]!r}.", field="kept")
    if function is not None and re.fullmatch(FUNCTION_PATTERN, function) is None:
        raise BadInput(f"function: expected app.function, not {function[:100]!r}.", field="function")
    name = function or ""
    if name and ":" not in name:
        name = f"{tenant}:{name}"
    limit = count_of(request, "limit", DEFAULT_LIMIT, MOST_LISTED)
    calls, silent = await services.find_kept(AskKept(tenant=tenant, function=name, kept=kept or "", limit=limit))
    rows = tuple(row_of(call, operator=operator) for call in calls)
    return json_answer(KeptCallList(calls=rows, unanswered=tuple(shown_gateways(silent, operator=operator))))


async def explain_call(request: Request, services: KeptCallServices) -> Response:
    """`GET /v1/calls/{id}/explanation`."""
    principal, name = principal_of(request), request.path_params["id"]
    tenant = principal.tenant
    if not CALL_ID.fullmatch(name) and not REQUEST_ID.fullmatch(name):
        expected = "call_… or req_… as an answer or an error named it"
        raise UnknownCall(f"{name[:100]!r} is the id of no call and no request: expected {expected}.")
    found, silent = await services.find_kept(AskKept(tenant=tenant, call_id=name, limit=1))
    if not found and (run := await _run_of_job(services, tenant, name)):
        found, silent = await services.find_kept(AskKept(tenant=tenant, call_id=run, limit=1))
    if not found:
        raise UnknownCall(f"Nothing is kept of {name}: {NOT_KEPT}{_unheard(silent, operator=principal.operator)}")
    return json_answer(explanation_of(found[0], operator=principal.operator))


def _unheard(silent: list[str], *, operator: bool) -> str:
    """Who did not answer, in a sentence; "": all did."""
    if not silent:
        return ""
    if operator:
        return f" These gateways did not answer, and may have it: {', '.join(silent)}."
    return f" {'1 gateway' if len(silent) == 1 else f'{len(silent)} gateways'} did not answer, and may have it."


async def _run_of_job(services: KeptCallServices, tenant: str, name: str) -> str:
    """The last run of the job of this id, if that has another one; "": it has not."""
    job = await services.jobs.find(tenant, name) if CALL_ID.fullmatch(name) else None
    return job.run if job is not None and job.run != name else ""


KEPT_CALLS = (
    Operation(
        method="GET", path="/v1/calls", name="listKeptCalls", endpoint=list_kept_calls,
        about="Calls that failed, were slow or were sampled, the newest first.", scopes=("invoke", "read"),
        answer=KeptCallList, errors=("bad_input",),
        parameters=(
            Parameter(
                name="function", about="Only this one's: app.function.",
                schema={"type": "string", "pattern": FUNCTION_PATTERN},
            ),
            Parameter(name="kept", about="Only those kept for this reason.", schema={"enum": [*KeptWhy]}),
            Parameter(
                name="limit", about="How many at most.",
                schema={"type": "integer", "minimum": 1, "maximum": MOST_LISTED},
            ),
        ),
    ),
    Operation(
        method="GET", path="/v1/calls/{id}/explanation", name="explainCall", endpoint=explain_call,
        about="Why one call was slow, failed or was refused: where its time went, in numbers and in words.",
        scopes=("invoke", "read"), answer=CallExplanation, errors=("unknown_call",),
    ),
)  # fmt: skip
