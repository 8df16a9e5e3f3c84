"""Webhooks of a tenant, their deliveries, and their operations."""

from __future__ import annotations

import time
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.host.outbound.address_policy import Network
from pilotlight_core.model.api.webhook_api import (
    DeliveryInfo,
    NewWebhook,
    WebhookChange,
    WebhookInfo,
    WebhookRequest,
    WebhookRotation,
)
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.http.protocol.api_operations import (
    BODY,
    Operation,
    Parameter,
    json_answer,
    list_of,
    principal_of,
    read_struct,
)
from pilotlight_gateway.webhooks import webhook_service
from pilotlight_gateway.webhooks.webhook_port import WebhookStore

SHOWN_BY_DEFAULT, SHOWN_AT_MOST = 50, 1_000
READS = ("read", "deploy")
WRITES = ("deploy",)


@dataclass(frozen=True, kw_only=True)
class WebhookServices:
    """The ports of these endpoints."""

    webhooks: WebhookStore
    networks: tuple[Network, ...]
    """Networks that webhooks may reach although they are not public."""
    budget: ByteBudget


async def create(request: Request, services: WebhookServices) -> Response:
    """`POST /v1/webhooks`."""
    asked = await read_struct(request, services.budget, WebhookRequest)
    tenant = principal_of(request).tenant
    made = await webhook_service.create_webhook(services.webhooks, tenant, asked, time.time(), services.networks)
    return json_answer(made, status=201)


async def show_all(request: Request, services: WebhookServices) -> Response:
    """`GET /v1/webhooks`."""
    return json_answer(
        {"webhooks": await webhook_service.list_webhooks(services.webhooks, principal_of(request).tenant)}
    )


async def show(request: Request, services: WebhookServices) -> Response:
    """`GET /v1/webhooks/{id}`."""
    return json_answer(
        webhook_service.webhook_info(await webhook_service.own_webhook(services.webhooks, *_named(request)))
    )


async def change(request: Request, services: WebhookServices) -> Response:
    """`PATCH /v1/webhooks/{id}`."""
    asked = await read_struct(request, services.budget, WebhookChange)
    networks = services.networks
    return json_answer(await webhook_service.change_webhook(services.webhooks, *_named(request), asked, networks))


async def delete(request: Request, services: WebhookServices) -> Response:
    """`DELETE /v1/webhooks/{id}`."""
    await webhook_service.delete_webhook(services.webhooks, *_named(request))
    return Response(status_code=204)


async def rotate(request: Request, services: WebhookServices) -> Response:
    """`POST /v1/webhooks/{id}/rotate`."""
    asked = await read_struct(request, services.budget, WebhookRotation, default=WebhookRotation())
    made = await webhook_service.rotate_secret(services.webhooks, *_named(request), asked, time.time())
    return json_answer(made, status=201)


async def ping(request: Request, services: WebhookServices) -> Response:
    """`POST /v1/webhooks/{id}/ping`."""
    return json_answer(await webhook_service.ping(services.webhooks, *_named(request), time.time()), status=202)


async def show_deliveries(request: Request, services: WebhookServices) -> Response:
    """`GET /v1/webhooks/{id}/deliveries`."""
    found = await webhook_service.list_deliveries(services.webhooks, *_named(request), _limit(request))
    return json_answer({"deliveries": found})


async def resend(request: Request, services: WebhookServices) -> Response:
    """`POST /v1/webhooks/{id}/deliveries/{delivery}/resend`."""
    delivery = request.path_params["delivery"]
    made = await webhook_service.resend(services.webhooks, *_named(request), delivery, time.time())
    return json_answer(made, status=202)


def _named(request: Request) -> tuple[str, str]:
    return principal_of(request).tenant, request.path_params["id"]


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", str(SHOWN_BY_DEFAULT))
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= SHOWN_AT_MOST):
        raise BadInput(f"limit: expected 1 to {SHOWN_AT_MOST}.", field="limit")
    return int(text)


WEBHOOKS = (
    Operation(
        method="POST", path="/v1/webhooks", name="createWebhook", status=201, endpoint=create, scopes=WRITES,
        tells=("events", "label"),
        about="Create a webhook for jobs' ends. Its secret is shown only here.", request=WebhookRequest,
        answer=NewWebhook, errors=(*BODY, "conflict", "overloaded"),
    ),
    Operation(
        method="GET", path="/v1/webhooks", name="listWebhooks", about="The webhooks, without their secrets.",
        endpoint=show_all, scopes=READS, answer=list_of("Webhooks", WebhookInfo),
    ),
    Operation(
        method="GET", path="/v1/webhooks/{id}", name="getWebhook", about="One webhook.", endpoint=show, scopes=READS,
        answer=WebhookInfo, errors=("not_found",),
    ),
    Operation(
        method="PATCH", path="/v1/webhooks/{id}", name="changeWebhook", endpoint=change, scopes=WRITES,
        tells=("events", "label", "disabled"),
        about="Change a webhook, or disable and enable it.", request=WebhookChange, answer=WebhookInfo,
        errors=(*BODY, "not_found", "conflict", "overloaded"),
    ),
    Operation(
        method="DELETE", path="/v1/webhooks/{id}", name="deleteWebhook", about="Delete a webhook.", status=204,
        endpoint=delete, scopes=WRITES, errors=("not_found", "conflict", "overloaded"),
    ),
    Operation(
        method="POST", path="/v1/webhooks/{id}/rotate", name="rotateWebhookSecret", status=201, endpoint=rotate,
        tells=("overlap_s",),
        about="Replace the signing secret; for a while both sign.", scopes=WRITES,
        request=WebhookRotation, body_required=False, answer=NewWebhook,
        errors=(*BODY, "not_found", "conflict", "overloaded"),
    ),
    Operation(
        method="POST", path="/v1/webhooks/{id}/ping", name="pingWebhook", status=202, endpoint=ping, scopes=WRITES,
        changes=False,
        about="Send a test event.", answer=DeliveryInfo, errors=("not_found", "conflict", "overloaded"),
    ),
    Operation(
        method="GET", path="/v1/webhooks/{id}/deliveries", name="listDeliveries", endpoint=show_deliveries,
        about="The deliveries of a webhook, newest first.", scopes=READS,
        answer=list_of("Deliveries", DeliveryInfo), errors=("not_found", "bad_input"),
        parameters=(
            Parameter(
                name="limit", about="The most deliveries to show.",
                schema={"type": "integer", "minimum": 1, "maximum": SHOWN_AT_MOST, "default": SHOWN_BY_DEFAULT},
            ),
        ),
    ),
    Operation(
        method="POST", path="/v1/webhooks/{id}/deliveries/{delivery}/resend", name="resendDelivery", status=202,
        changes=False,
        endpoint=resend, about="Send a delivery again, under the same id.", scopes=WRITES, answer=DeliveryInfo,
        errors=("not_found", "conflict", "overloaded"),
    ),
)  # fmt: skip
