"""What becomes of a delivery after each attempt, and of its webhook. Plain functions; instants are unix seconds.

The retry schedule is the one that Standard Webhooks recommends. A webhook that fails for as long as a whole schedule
lasts is disabled, and so is one that answers 410; its owner enables it again.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import structs

from pilotlight_core.model.api.webhook_api import DeliveryAttempt, DeliveryRecord, DeliveryState, WebhookRecord

SCHEDULE: Final = (0.0, 5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
"""Seconds from one attempt to the next: ten attempts in a little more than three days."""
WHOLE_SCHEDULE_S = sum(SCHEDULE)
JITTER = 0.1
"""A delay is longer by up to a tenth, so that what failed together does not return together."""
LONGEST_DELAY_S = 86_400.0
"""A receiver may ask for no longer."""
THROTTLED = frozenset({429, 502, 503, 504})
"""Statuses whose Retry-After is heeded."""
GONE = 410
ATTEMPTS_KEPT = 20


class DeliveryOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one sending came to."""

    attempt: DeliveryAttempt
    retry_after: float | None = None
    """Seconds that the receiver asked for."""

    @property
    def delivered(self) -> bool:
        """Only 2xx is a receipt; a redirect is none."""
        return 200 <= self.attempt.status < 300 and not self.attempt.error

    @property
    def gone(self) -> bool:
        """Whether the receiver wants to hear nothing more."""
        return self.attempt.status == GONE


def attempted(record: DeliveryRecord, outcome: DeliveryOutcome, spread: float) -> DeliveryRecord:
    """The delivery after an attempt. `spread` in [0, 1) is the jitter's share."""
    record = structs.replace(
        record,
        tried=record.tried + 1,
        attempts=(*record.attempts, outcome.attempt)[-ATTEMPTS_KEPT:],
    )
    if outcome.delivered:
        return structs.replace(record, state=DeliveryState.DELIVERED)
    if outcome.gone or record.tried >= len(SCHEDULE):
        return structs.replace(record, state=DeliveryState.FAILED)
    return structs.replace(record, next_at=outcome.attempt.at + delay(record.tried, outcome, spread))


def delay(tried: int, outcome: DeliveryOutcome, spread: float) -> float:
    """Seconds until the next attempt, after `tried` of them (1 to 9)."""
    asked = outcome.retry_after if outcome.attempt.status in THROTTLED else None
    planned = SCHEDULE[tried] * (1.0 + JITTER * spread)
    return max(planned, min(asked or 0.0, LONGEST_DELAY_S))


def given_up(record: DeliveryRecord, at: float, why: str) -> DeliveryRecord:
    """The delivery when its webhook cannot be sent to."""
    attempt = DeliveryAttempt(at=at, ms=0.0, error=why)
    return structs.replace(
        record,
        state=DeliveryState.FAILED,
        attempts=(*record.attempts, attempt)[-ATTEMPTS_KEPT:],
        tried=record.tried + 1,
    )


def resent(record: DeliveryRecord, at: float) -> DeliveryRecord:
    """The delivery when its owner wants it sent again: the same id and body, a schedule of its own."""
    return structs.replace(record, state=DeliveryState.PENDING, tried=0, next_at=at)


def judged(webhook: WebhookRecord, outcome: DeliveryOutcome) -> WebhookRecord:
    """The webhook after an attempt: whether it fails, since when, and whether it is sent to any more."""
    if webhook.disabled:
        return webhook
    if outcome.delivered:
        return structs.replace(webhook, failing_since=None)
    at = outcome.attempt.at
    since = at if webhook.failing_since is None else webhook.failing_since
    why = ""
    if outcome.gone:
        why = "it answered 410 Gone"
    elif at - since >= WHOLE_SCHEDULE_S:
        why = f"nothing was delivered for {WHOLE_SCHEDULE_S / 3600:.0f} hours"
    return structs.replace(webhook, failing_since=since, disabled=why)
