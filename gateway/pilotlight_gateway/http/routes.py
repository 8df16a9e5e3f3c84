"""Every operation of the API, in one list."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.api.call_api import (
    AppInfo,
    CallRequest,
    CallResponse,
    DeployLine,
    DeployRequest,
    DeployResponse,
    JobList,
    JobStatus,
    RenewRequest,
)
from pilotlight_core.model.api.receipt_api import CallReceipt
from pilotlight_core.model.ids import FUNCTION_PATTERN, NAME_PATTERN
from pilotlight_core.model.records.jobs import JobState
from pilotlight_core.model.spec import Priority
from pilotlight_core.model.streams.resuming import MOST_RESUME_S
from pilotlight_gateway.deploys.function_logs import MOST_LINES, SINCE_SCHEMA, FunctionLine
from pilotlight_gateway.http.calls import call_events
from pilotlight_gateway.http.endpoints import account, apps, documents, health, jobs, logs
from pilotlight_gateway.http.endpoints.autoscaler import AUTOSCALER
from pilotlight_gateway.http.endpoints.batches import BATCHES
from pilotlight_gateway.http.endpoints.billing.budgets import BUDGETS
from pilotlight_gateway.http.endpoints.billing.credits import CREDITS
from pilotlight_gateway.http.endpoints.billing.invoices import INVOICES
from pilotlight_gateway.http.endpoints.billing.quarantine import QUARANTINE
from pilotlight_gateway.http.endpoints.billing.usage import USAGE
from pilotlight_gateway.http.endpoints.containers import CONTAINERS
from pilotlight_gateway.http.endpoints.curves import CURVES
from pilotlight_gateway.http.endpoints.issuers import ISSUERS
from pilotlight_gateway.http.endpoints.logins.sessions import SESSIONS
from pilotlight_gateway.http.endpoints.nodes import NODES
from pilotlight_gateway.http.endpoints.oversight.audit import AUDIT
from pilotlight_gateway.http.endpoints.oversight.diagnosis import DIAGNOSIS
from pilotlight_gateway.http.endpoints.oversight.erasure import ERASURE
from pilotlight_gateway.http.endpoints.oversight.events import EVENTS
from pilotlight_gateway.http.endpoints.oversight.kept_calls import KEPT_CALLS
from pilotlight_gateway.http.endpoints.oversight.pools import POOLS
from pilotlight_gateway.http.endpoints.oversight.pressure import PRESSURE
from pilotlight_gateway.http.endpoints.oversight.scaling import SCALING
from pilotlight_gateway.http.endpoints.oversight.stats import STATS
from pilotlight_gateway.http.endpoints.placement import PLACEMENT
from pilotlight_gateway.http.endpoints.prices import PRICES
from pilotlight_gateway.http.endpoints.rollouts.aliases import ALIASES
from pilotlight_gateway.http.endpoints.rollouts.rollbacks import ROLLBACKS
from pilotlight_gateway.http.endpoints.rollouts.rollouts import ROLLOUTS
from pilotlight_gateway.http.endpoints.secrets.secrets import SECRETS
from pilotlight_gateway.http.endpoints.supply.policies import POLICIES
from pilotlight_gateway.http.endpoints.supply.supply_keys import SUPPLY_KEYS
from pilotlight_gateway.http.endpoints.supply.version_documents import VERSION_DOCUMENTS
from pilotlight_gateway.http.endpoints.tenancy import TENANCY
from pilotlight_gateway.http.endpoints.webhooks import WEBHOOKS
from pilotlight_gateway.http.endpoints.weights.weights import WEIGHTS
from pilotlight_gateway.http.inference.front_operations import FIXED, INFER, REQUESTS, TENSOR_MODELS
from pilotlight_gateway.http.openai.embedding_routes import EMBEDDINGS
from pilotlight_gateway.http.openai.files.file_routes import FILES
from pilotlight_gateway.http.openai.model_routes import MODEL_LIST
from pilotlight_gateway.http.openai.response_routes import RESPONSES
from pilotlight_gateway.http.openai.text_routes import TEXT
from pilotlight_gateway.http.protocol.api_operations import BODY, Operation, Parameter, list_of
from pilotlight_gateway.jobs.sealed_cursors import PATTERN as CURSOR

CALL_ERRORS = (
    *BODY, "unknown_function", "unknown_version", "not_acceptable", "queue_full", "rate_limited", "cancelled",
    "too_many_tokens",
    "function_raised", "load_failed", "bad_output", "container_died", "preempted", "no_capacity", "draining",
    "overloaded", "misconfigured", "execution_timeout", "idempotency_key_in_use", "idempotency_key_reused",
    "answer_not_kept", "call_lost",
)  # fmt: skip
NAME_SCHEMA = {"type": "string", "pattern": NAME_PATTERN}
TAIL_SCHEMA = {"type": "integer", "minimum": 0, "maximum": MOST_LINES}
_STATES = "|".join(JobState)
OBJECT: dict[str, Any] = {"type": "object"}


CALL_OPERATION: Operation[None] = Operation(
    method="POST", path="/v1/functions/{ref}/calls", name="callFunction", endpoint=None, scopes=("invoke",),
    about="Call a function and wait for its answer, or for its stages, chunks and result as events.",
    request=CallRequest, request_media=("application/json", "application/msgpack"), body_required=False,
    answer=CallResponse,
    answer_media=("application/json", "application/msgpack", "text/event-stream"), errors=CALL_ERRORS,
    accepted=JobStatus,
    parameters=(
        Parameter(
            name="Pilotlight-Priority", where="header", about="Lower the call's class.",
            schema={"enum": [str(priority) for priority in Priority]},
        ),
        Parameter(
            name="Idempotency-Key", where="header",
            about="A repeated request with the same key gets the first one's answer. Not with text/event-stream.",
            schema={"type": "string", "minLength": 1, "maxLength": 255},
        ),
        Parameter(
            name="Prefer", where="header",
            about="respond-async: store the call as a job and answer 202. wait=30: how long to wait for the job, "
            "or for a first request with the same key.",
        ),
        Parameter(
            name="Pilotlight-Resume-S", where="header",
            about="Of text/event-stream: how many seconds the call goes on when its client is gone, who can read on at "
            "/v1/calls/{id}/events. Default: what the function says if it is resumable, else 0.",
            schema={"type": "number", "minimum": 0, "maximum": MOST_RESUME_S},
        ),
        Parameter(name="values", about="msgpack: events carry values as base64 of msgpack."),
    ),
)  # fmt: skip

FUNCTION_DOCUMENT = (
    Operation(
        method="GET", path="/v1/functions/{ref}/openapi.json", name="describeFunction",
        about="A function's own document.", endpoint=documents.show_function, answer=OBJECT,
        scopes=("invoke", "read", "deploy"),
        errors=("bad_input", "unknown_function", "unknown_version", "overloaded"),
    ),
)  # fmt: skip

CALLS_BY_ID = (
    Operation(
        method="GET", path="/v1/calls/{id}", name="getCall", about="How a call is.", endpoint=account.show_call,
        scopes=("invoke", "read"), answer=JobStatus, answer_media=("application/json", "application/msgpack"),
        errors=("unknown_call", "call_lost", "not_acceptable", "overloaded"),
        parameters=(
            Parameter(name="Prefer", where="header", about="wait=30: how long to wait for the end of a job."),
        ),
    ),
    Operation(
        method="GET", path="/v1/calls/{id}/receipt", name="getReceipt", endpoint=account.show_receipt,
        about="What a call was billed, whether it ended well or not.", scopes=("read",), answer=CallReceipt,
        errors=("unknown_call", "not_found"),
    ),
    Operation(
        method="DELETE", path="/v1/calls/{id}", name="cancelCall", about="Cancel a call.", status=202,
        endpoint=account.cancel_call, scopes=("invoke",), answer=OBJECT, errors=("unknown_call", "call_lost"),
    ),
)  # fmt: skip

CALL_EVENTS = (
    Operation(
        method="GET", path="/v1/calls/{id}/events", name="followCall", endpoint=call_events.follow_call,
        about="The events of a stream whose connection broke, for as long as it waits for its client "
        "(Pilotlight-Resume-S). 204: there are none, and none follow.",
        scopes=("invoke",), answer=CallResponse, answer_media=("text/event-stream",),
        errors=("bad_input", "unknown_call", "call_lost", "events_gone", "no_capacity"),
        parameters=(
            Parameter(
                name="Last-Event-ID", where="header", about="The last event that the client has. Without it: all.",
                schema={"type": "string", "pattern": "^[0-9]{1,15}$"},
            ),
        ),
    ),
)  # fmt: skip

JOBS = (
    Operation(
        method="GET", path="/v1/jobs", name="listJobs", about="Durable calls, the last changed first.",
        endpoint=jobs.list_jobs, scopes=("invoke", "read"), answer=JobList,
        errors=("bad_input", "unknown_function", "not_found"),
        parameters=(
            Parameter(
                name="state", about="Only these: comma-separated.",
                schema={"type": "string", "pattern": f"^({_STATES})(,({_STATES}))*$"},
            ),
            Parameter(
                name="function", about="Only this one's: app.function.",
                schema={"type": "string", "pattern": FUNCTION_PATTERN},
            ),
            Parameter(name="limit", about="Jobs on a page.", schema={"type": "integer", "minimum": 1, "maximum": 1000}),
            Parameter(
                name="cursor", about="`next` of the page before.", schema={"type": "string", "pattern": CURSOR.pattern}
            ),
        ),
    ),
    Operation(
        method="POST", path="/v1/jobs/{id}/redrive", name="redriveJob", status=202, endpoint=jobs.redrive_job,
        about="Queue a job anew that failed, expired or was cancelled.", scopes=("invoke",), answer=JobStatus,
        errors=("unknown_call", "conflict", "rate_limited"),
    ),
)  # fmt: skip

APPS = (
    Operation(
        method="POST", path="/v1/apps/{app}/deploys", name="deployApp", endpoint=apps.deploy_app, scopes=("deploy",),
        tells=("message", "base", "prune", "ends_in_s", "no_traffic", "retry"),
        about="Deploy all of an app at once, or name the blobs to upload first.", request=DeployRequest,
        answer=DeployResponse,
        errors=(*BODY, "conflict", "removes_functions", "version_withdrawn", "quota_exceeded", "overloaded",
            "policy_refused"),
    ),
    Operation(
        method="PUT", path="/v1/blobs/{sha256}", name="putBlob", about="Upload a file by its digest.", status=201,
        changes=False,
        endpoint=apps.put_blob, scopes=("deploy",), request_media=("application/octet-stream",), answer=OBJECT,
        errors=(*BODY, "rate_limited", "quota_exceeded", "overloaded"), rated=False,
    ),
    Operation(
        method="GET", path="/v1/apps", name="listApps", about="What is deployed.", endpoint=apps.list_apps,
        scopes=("read", "deploy"), answer=list_of("Apps", AppInfo),
    ),
    Operation(
        method="GET", path="/v1/apps/{app}", name="getApp", about="One app.", endpoint=apps.show_app,
        scopes=("read", "deploy"), answer=AppInfo, errors=("not_found", "bad_input"),
    ),
    Operation(
        method="GET", path="/v1/apps/{app}/history", name="getHistory", about="An app's deploys, oldest first.",
        endpoint=apps.show_history, scopes=("read", "deploy"), answer=list_of("History", DeployLine),
        errors=("not_found", "bad_input"),
    ),
    Operation(
        method="POST", path="/v1/apps/{app}/stop", name="stopApp", about="Take an app out of service.",
        endpoint=apps.stop_app, scopes=("deploy",), answer=OBJECT, errors=("not_found", "bad_input", "conflict"),
    ),
    Operation(
        method="POST", path="/v1/apps/{app}/renew", name="renewApp", changes=False, about="Let a run end later.",
        endpoint=apps.renew_app, scopes=("deploy",), request=RenewRequest, answer=OBJECT,
        errors=(*BODY, "not_found", "conflict"),
    ),
    Operation(
        method="DELETE", path="/v1/apps/{app}", name="deleteApp", about="Delete an app with all its versions.",
        endpoint=apps.delete_app, scopes=("deploy",), answer=OBJECT, errors=("not_found", "bad_input", "conflict"),
    ),
)  # fmt: skip

LOGS = (
    Operation(
        method="GET", path="/v1/apps/{app}/logs", name="getLogs", about="What an app's functions print.",
        endpoint=logs.show_logs, scopes=("read", "deploy"), answer=FunctionLine,
        answer_media=("application/x-ndjson", "text/event-stream"),
        errors=("not_found", "unknown_function", "bad_input", "rate_limited"),
        parameters=(
            Parameter(name="function", about="Only this function's.", schema=NAME_SCHEMA),
            Parameter(name="call", about="Only this call's, by its id.", schema={"type": "string"}),
            Parameter(name="since", about="A time ago (10m, 2h) or unix seconds.", schema=SINCE_SCHEMA),
            Parameter(name="tail", about="Only the last so many.", schema=TAIL_SCHEMA),
            Parameter(name="follow", about="Wait for more.", schema={"type": "boolean"}),
        ),
    ),
)  # fmt: skip

API_DOCUMENT = (
    Operation(
        method="GET", path="/openapi.json", name="getOpenapi", about="This document.",
        endpoint=documents.show_openapi, answer=OBJECT,
    ),
)  # fmt: skip

HEALTH = (
    Operation(
        method="GET", path="/healthz", name="getHealth", about="The process is alive.", endpoint=health.healthz,
        answer=OBJECT,
    ),
    Operation(
        method="GET", path="/readyz", name="getReadiness", about="Calls are taken.", endpoint=health.readyz,
        answer=OBJECT, errors=("draining",),
    ),
)  # fmt: skip

OPERATIONS: tuple[Operation[Any], ...] = (
    CALL_OPERATION,
    *FUNCTION_DOCUMENT,
    *CALLS_BY_ID,
    *KEPT_CALLS,
    *CALL_EVENTS,
    *TEXT,
    *RESPONSES,
    *EMBEDDINGS,
    *MODEL_LIST,
    *FILES,
    *JOBS,
    *APPS,
    *ALIASES,
    *ROLLBACKS,
    *ROLLOUTS,
    *LOGS,
    *CONTAINERS,
    *NODES,
    *POOLS,
    *USAGE,
    *INVOICES,
    *QUARANTINE,
    *BUDGETS,
    *CREDITS,
    *PRICES,
    *PLACEMENT,
    *CURVES,
    *AUTOSCALER,
    *SCALING,
    *PRESSURE,
    *DIAGNOSIS,
    *STATS,
    *AUDIT,
    *EVENTS,
    *ERASURE,
    *TENANCY,
    *SESSIONS,
    *ISSUERS,
    *BATCHES,
    *WEBHOOKS,
    *SECRETS,
    *VERSION_DOCUMENTS,
    *POLICIES,
    *SUPPLY_KEYS,
    *WEIGHTS,
    *INFER,
    *TENSOR_MODELS,
    FIXED,
    *REQUESTS,
    *API_DOCUMENT,
    *HEALTH,
)
"""In the order of the OpenAPI document."""
