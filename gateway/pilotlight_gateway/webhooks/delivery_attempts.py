"""Decides what follows an attempt. Plain functions; instants are unix seconds.

The schedule is that of Standard Webhooks. A webhook is disabled when it answers 410 or has failed for a whole schedule;
its owner can enable it again.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import structs

from pilotlight_core.model.api.webhook_api import DeliveryAttempt, DeliveryRecord, DeliveryState, WebhookRecord

SCHEDULE: Final = (0.0, 5.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
"""Seconds before each attempt: ten in a little more than three days."""
WHOLE_SCHEDULE_S = sum(SCHEDULE)
JITTER = 0.1
"""The random part of a delay, so that deliveries that failed together do not return together."""
LONGEST_DELAY_S = 86_400.0
"""Upper bound of a receiver's Retry-After."""
THROTTLED = frozenset({429, 502, 503, 504})
"""Statuses whose Retry-After counts."""
GONE = 410
ATTEMPTS_KEPT = 20


class DeliveryOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one attempt."""

    attempt: DeliveryAttempt
    retry_after: float | None = None
    """The receiver's Retry-After in seconds."""

    @property
    def delivered(self) -> bool:
        """Whether the status is 2xx; redirects do not count."""
        return 200 <= self.attempt.status < 300 and not self.attempt.error

    @property
    def gone(self) -> bool:
        return self.attempt.status == GONE


def attempted(record: DeliveryRecord, outcome: DeliveryOutcome, spread: float) -> DeliveryRecord:
    """The delivery after an attempt, with jitter `spread` in [0, 1)."""
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
    """Seconds until the next attempt, after `tried` (1 to 9) of them."""
    asked = outcome.retry_after if outcome.attempt.status in THROTTLED else None
    planned = SCHEDULE[tried] * (1.0 + JITTER * spread)
    return max(planned, min(asked or 0.0, LONGEST_DELAY_S))


def given_up(record: DeliveryRecord, at: float, why: str) -> DeliveryRecord:
    """The delivery, failed for the reason `why` without sending."""
    attempt = DeliveryAttempt(at=at, ms=0.0, error=why)
    return structs.replace(
        record,
        state=DeliveryState.FAILED,
        attempts=(*record.attempts, attempt)[-ATTEMPTS_KEPT:],
        tried=record.tried + 1,
    )


def resent(record: DeliveryRecord, at: float) -> DeliveryRecord:
    """The delivery, pending on a new schedule."""
    return structs.replace(record, state=DeliveryState.PENDING, tried=0, next_at=at)


def judged(webhook: WebhookRecord, outcome: DeliveryOutcome) -> WebhookRecord:
    """The webhook after an attempt, which may disable it."""
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
