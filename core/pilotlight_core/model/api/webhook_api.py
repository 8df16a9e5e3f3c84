"""Webhooks and deliveries: the records of two buckets, and the bodies of the HTTP API about them.

A *webhook* is a receiver's address with its signing secrets; a *delivery* is one event for one webhook, whose id
(`webhook-id`) is the same in every attempt.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import LINE_PATTERN, Request
from pilotlight_core.model.ids import END

URL_PATTERN = r"^https?://(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)(:[1-9][0-9]{0,4})?(/[!$&-;=?-Z_a-z~%]*)?$"
"""An address without a user or a fragment; the address that it resolves to is checked at each delivery."""
LONGEST_URL = 2_048
ID_PATTERN = "^wh_[0-9a-z]{20}$"
DELIVERY_PATTERN = "^msg_[0-9a-z]{32}$"
WEBHOOKS_PER_TENANT = 16
LONGEST_OVERLAP_S = 30 * 86_400.0


class WebhookEvent(StrEnum):
    SUCCEEDED = "job.succeeded"
    FAILED = "job.failed"
    CANCELLED = "job.cancelled"
    EXPIRED = "job.expired"
    THRESHOLD = "budget.threshold"
    STEP = "rollout.step"
    HELD = "rollout.held"
    PROMOTED = "rollout.promoted"
    ROLLED_BACK = "rollout.rolled_back"
    SLO_BROKEN = "slo.broken"
    SLO_KEPT = "slo.kept"
    PING = "webhook.ping"  # on request, whatever events the webhook has


JOB_EVENTS = (WebhookEvent.SUCCEEDED, WebhookEvent.FAILED, WebhookEvent.CANCELLED, WebhookEvent.EXPIRED)
ROLLOUT_EVENTS = (WebhookEvent.STEP, WebhookEvent.HELD, WebhookEvent.PROMOTED, WebhookEvent.ROLLED_BACK)
EVENTS = (*JOB_EVENTS, WebhookEvent.THRESHOLD, *ROLLOUT_EVENTS, WebhookEvent.SLO_BROKEN, WebhookEvent.SLO_KEPT)
"""Those that a webhook may have."""
_CHOICES = "|".join(event.replace(".", "[.]") for event in EVENTS)
EventName = Annotated[str, Meta(pattern=f"^({_CHOICES}){END}")]
Url = Annotated[str, Meta(max_length=LONGEST_URL, pattern=URL_PATTERN)]
Label = Annotated[str, Meta(max_length=100, pattern=LINE_PATTERN)]
EventNames = Annotated[tuple[EventName, ...], Meta(min_length=1, max_length=16)]


class SigningSecret(msgspec.Struct, frozen=True, kw_only=True):
    """A secret that deliveries are signed with."""

    value: str
    """`whsec_` and the key in base64."""
    expires_at: float | None = msgspec.field(default=None, name="until")
    """Unix second from which on it is not used; None: the present secret."""


class WebhookRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver. Key: `{tenant}.{id}`."""

    id: str
    tenant: str
    url: str
    events: tuple[str, ...]
    secrets: tuple[SigningSecret, ...]
    """Newest first."""
    created_at: float
    after: int = 0
    """Sequence in the stream of jobs after which events are delivered to it."""
    label: str = ""
    disabled: str = ""
    """Why nothing is sent to it, or ""."""
    failing_since: float | None = None
    """Unix second of the first failure since the last success."""


class DeliveryState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"  # given up; it can be redelivered on request


class DeliveryAttempt(msgspec.Struct, frozen=True, kw_only=True):
    at: float
    """Unix seconds."""
    ms: float
    status: int = 0
    """HTTP status of the response; 0: none."""
    error: str = ""


class DeliveryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One event for one webhook. Key: `{tenant}.{webhook}.{id}`."""

    id: str
    tenant: str
    webhook: str
    event: str
    about: str
    """The id of the event's subject."""
    body: bytes
    """The same in every attempt."""
    created_at: float
    next_at: float
    """Unix seconds."""
    state: DeliveryState = DeliveryState.PENDING
    tried: int = 0
    """Attempts of the present round: its position in the retry schedule."""
    attempts: tuple[DeliveryAttempt, ...] = ()
    """The latest ones."""
    traceparent: str = ""
    """Which each attempt is sent with; "": its subject has no trace."""


class WebhookRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/webhooks`."""

    url: Url
    events: EventNames = tuple(str(event) for event in JOB_EVENTS)
    label: Label = ""


class WebhookChange(Request, frozen=True, kw_only=True):
    """`PATCH /v1/webhooks/{id}`: missing fields stay as they are."""

    url: Url | None = None
    events: EventNames | None = None
    label: Label | None = None
    disabled: bool | None = None


class WebhookRotation(Request, frozen=True, kw_only=True):
    """`POST /v1/webhooks/{id}/rotate`."""

    overlap_s: Annotated[float, Meta(ge=0, le=LONGEST_OVERLAP_S)] = 86_400.0
    """Seconds for which deliveries are signed with the old secret too."""


class WebhookInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook, without its secrets."""

    id: str
    url: str
    events: tuple[str, ...]
    label: str
    created_at: float
    disabled: bool
    disabled_because: str
    failing_since: float | None


class NewWebhook(WebhookInfo, frozen=True, kw_only=True):
    """The answer to `POST /v1/webhooks` and `…/rotate`: the only time that the secret is shown."""

    secret: str
    replaced_until: float | None = None
    """Unix second up to which the former secret signs too."""


class DeliveryInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery in the webhook's log."""

    id: str
    event: str
    about: str
    state: str
    created_at: float
    next_at: float | None
    """The next attempt, unix seconds; None: there is none."""
    attempts: tuple[DeliveryAttempt, ...]
