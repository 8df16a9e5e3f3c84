"""Every operation of the API, in one list."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_core.model.api import (
    AppInfo,
    CallRequest,
    CallResponse,
    CallStatus,
    DeployRequest,
    DeployResponse,
    KeyRequest,
)
from pilotlight_core.model.spec import DeployRecord
from pilotlight_gateway.function_logs import FunctionLine
from pilotlight_gateway.http import account, apps, documents, health
from pilotlight_gateway.http.operations import Operation, Parameter
from pilotlight_gateway.keys import KeyInfo, NewKey
from pilotlight_gateway.ledger.report import UsageReport

BODY = ("bad_request", "bad_input", "too_large", "unsupported_media_type", "deadline_exceeded")
CALL_ERRORS = (
    *BODY, "unknown_function", "unknown_version", "not_acceptable", "queue_full", "rate_limited", "cancelled",
    "function_raised", "load_failed", "bad_output", "container_died", "no_capacity", "draining", "overloaded",
    "execution_timeout",
)  # fmt: skip
OBJECT: dict[str, Any] = {"type": "object"}


def _list(name: str, kind: Any) -> Any:
    """The type of an object with one list in it."""
    return msgspec.defstruct(name, [(name.lower(), list[kind])])


OPERATIONS = (
    Operation(
        method="POST", path="/v1/functions/{ref}/calls", name="callFunction", endpoint=None, scopes=("invoke",),
        about="Call a function and wait for its answer, or for its stages, chunks and result as events.",
        request=CallRequest, request_media=("application/json", "application/msgpack"), answer=CallResponse,
        answer_media=("application/json", "application/msgpack", "text/event-stream"), errors=CALL_ERRORS,
        parameters=(
            Parameter(name="Pilotlight-Priority", where="header", about="Lower the call's class: standard or batch."),
            Parameter(name="values", about="msgpack: events carry values as base64 of msgpack."),
        ),
    ),
    Operation(
        method="GET", path="/v1/functions/{ref}/openapi.json", name="describeFunction",
        about="A function's own document.", endpoint=documents.show_function, answer=OBJECT,
        scopes=("invoke", "read", "deploy"),
        errors=("bad_input", "unknown_function", "unknown_version"),
    ),
    Operation(
        method="GET", path="/v1/calls/{id}", name="getCall", about="How a call is.", endpoint=account.show_call,
        scopes=("invoke", "read"), answer=CallStatus, errors=("unknown_call", "call_lost"),
    ),
    Operation(
        method="DELETE", path="/v1/calls/{id}", name="cancelCall", about="Cancel a call.", status=202,
        endpoint=account.cancel_call, scopes=("invoke",), answer=OBJECT, errors=("unknown_call", "call_lost"),
    ),
    Operation(
        method="POST", path="/v1/apps/{app}/deploys", name="deployApp", endpoint=apps.deploy_app, scopes=("deploy",),
        about="Deploy all of an app at once, or be told which blobs to upload first.", request=DeployRequest,
        answer=DeployResponse, errors=(*BODY, "conflict", "overloaded"),
    ),
    Operation(
        method="PUT", path="/v1/blobs/{sha256}", name="putBlob", about="Upload a file by its digest.", status=201,
        endpoint=apps.put_blob, scopes=("deploy",), request_media=("application/octet-stream",), answer=OBJECT,
        errors=(*BODY, "rate_limited", "overloaded"),
    ),
    Operation(
        method="GET", path="/v1/apps", name="listApps", about="What is deployed.", endpoint=apps.list_apps,
        scopes=("read", "deploy"), answer=_list("Apps", AppInfo),
    ),
    Operation(
        method="GET", path="/v1/apps/{app}", name="getApp", about="One app.", endpoint=apps.show_app,
        scopes=("read", "deploy"), answer=AppInfo, errors=("not_found", "bad_input"),
    ),
    Operation(
        method="GET", path="/v1/apps/{app}/history", name="getHistory", about="An app's deploys, oldest first.",
        endpoint=apps.show_history, scopes=("read", "deploy"), answer=_list("History", DeployRecord),
        errors=("not_found", "bad_input"),
    ),
    Operation(
        method="POST", path="/v1/apps/{app}/stop", name="stopApp", about="Take an app out of service.",
        endpoint=apps.stop_app, scopes=("deploy",), answer=OBJECT, errors=("not_found", "bad_input", "conflict"),
    ),
    Operation(
        method="GET", path="/v1/apps/{app}/logs", name="getLogs", about="What an app's functions print.",
        endpoint=apps.show_logs, scopes=("read", "deploy"), answer=FunctionLine,
        answer_media=("application/x-ndjson", "text/event-stream"), errors=("not_found", "bad_input", "rate_limited"),
        parameters=(
            Parameter(name="function", about="Only this function's."),
            Parameter(name="since", about="A time ago (10m, 2h) or unix seconds."),
            Parameter(name="tail", about="Only the last so many.", schema={"type": "integer", "minimum": 0}),
            Parameter(name="follow", about="Wait for more.", schema={"type": "boolean"}),
        ),
    ),
    Operation(
        method="GET", path="/v1/containers", name="listContainers", about="The containers that run now.",
        endpoint=account.show_containers, scopes=("read",), answer=OBJECT,
    ),
    Operation(
        method="GET", path="/v1/nodes", name="listNodes", about="The nodes, their slices and blanks.",
        endpoint=account.show_nodes, scopes=("admin",), answer=OBJECT,
    ),
    Operation(
        method="GET", path="/v1/usage", name="getUsage", about="What was used and what it costs, by UTC day.",
        endpoint=account.show_usage, scopes=("read",), answer=UsageReport,
        answer_media=("application/json", "text/csv"), errors=("bad_input",),
        parameters=(
            Parameter(name="from", about="First day, such as 2026-11-01; default: 30 days before 'to'."),
            Parameter(name="to", about="First day that is not in it; default: tomorrow."),
            Parameter(name="group", about="Comma-separated: day, app, function, version, state, price, ppm."),
            Parameter(name="format", about="json or csv.", schema={"enum": ["json", "csv"]}),
        ),
    ),
    Operation(
        method="POST", path="/v1/keys", name="createKey", about="Make an API key; it is shown only here.", status=201,
        endpoint=account.create, scopes=("admin",), request=KeyRequest, answer=NewKey, errors=(*BODY, "conflict"),
    ),
    Operation(
        method="GET", path="/v1/keys", name="listKeys", about="The API keys, without their secrets.",
        endpoint=account.show_keys, scopes=("admin",), answer=_list("Keys", KeyInfo),
    ),
    Operation(
        method="DELETE", path="/v1/keys/{id}", name="revokeKey", about="End a key.", status=204,
        endpoint=account.revoke, scopes=("admin",), errors=("not_found",),
    ),
    Operation(
        method="GET", path="/openapi.json", name="getOpenapi", about="This document.",
        endpoint=documents.show_openapi, answer=OBJECT,
    ),
    Operation(
        method="GET", path="/healthz", name="getHealth", about="The process is alive.", endpoint=health.healthz,
        answer=OBJECT,
    ),
    Operation(
        method="GET", path="/readyz", name="getReadiness", about="Calls are taken.", endpoint=health.readyz,
        answer=OBJECT, errors=("draining",),
    ),
    Operation(
        method="GET", path="/metrics", name="getMetrics", about="Prometheus metrics.", endpoint=health.show_metrics,
        answer=OBJECT, answer_media=("text/plain",),
    ),
)  # fmt: skip
