"""What becomes of deliveries and webhooks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from pilotlight_core.model.api.webhook_api import (
    DeliveryAttempt,
    DeliveryRecord,
    DeliveryState,
    SigningSecret,
    WebhookRecord,
)
from pilotlight_gateway.webhooks.delivery_attempts import (
    ATTEMPTS_KEPT,
    LONGEST_DELAY_S,
    SCHEDULE,
    WHOLE_SCHEDULE_S,
    DeliveryOutcome,
    attempted,
    given_up,
    judged,
    resent,
)

FRESH = DeliveryRecord(
    id="msg_x", tenant="acme", webhook="wh_x", event="job.failed", about="call_x", body=b"{}", created_at=0.0,
    next_at=0.0,
)  # fmt: skip
WEBHOOK = WebhookRecord(
    id="wh_x", tenant="acme", url="https://example.com/", events=("job.failed",),
    secrets=(SigningSecret(value="whsec_"),),
    created_at=0.0,
)  # fmt: skip
STATUSES = st.sampled_from([0, 100, 200, 204, 301, 307, 400, 404, 410, 429, 500, 503, 504])


def outcome(at: float, status: int, retry_after: float | None = None) -> DeliveryOutcome:
    return DeliveryOutcome(attempt=DeliveryAttempt(at=at, ms=1.0, status=status), retry_after=retry_after)


def test_the_schedule_is_the_recommended_one() -> None:
    """Ten attempts within 75 hours and 35 minutes, and five seconds."""
    assert len(SCHEDULE) == 10
    assert WHOLE_SCHEDULE_S == (75 * 60 + 35) * 60 + 5


@given(st.lists(st.tuples(STATUSES, st.floats(0, 1, exclude_max=True), st.none() | st.floats(0, 1e9)), min_size=12))
def test_a_delivery_ends_after_ten_attempts_or_at_a_receipt(
    answers: list[tuple[int, float, float | None]],
) -> None:
    """Only 2xx delivers; the next attempt is never earlier than planned nor, much, later; the body stays the same."""
    record, tries = FRESH, 0
    for status, spread, asked in answers:
        at = record.next_at
        record = attempted(record, outcome(at, status, asked), spread)
        tries += 1
        if record.state is not DeliveryState.PENDING:
            break
        planned = SCHEDULE[tries]
        assert planned - 1e-6 <= record.next_at - at <= max(planned * 1.1, LONGEST_DELAY_S) + 1e-6
        assert asked is None or status not in (429, 503) or record.next_at - at >= min(asked, LONGEST_DELAY_S) - 1e-6

    delivered = 200 <= status < 300
    assert (record.state is DeliveryState.DELIVERED) == delivered
    assert tries <= len(SCHEDULE)
    assert delivered or status == 410 or tries == len(SCHEDULE)
    assert (record.id, record.body) == (FRESH.id, FRESH.body)


def test_what_is_sent_again_has_a_schedule_of_its_own() -> None:
    """Its attempts stay in the log, the latest of them."""
    record = FRESH
    for _ in range(3):
        while record.state is DeliveryState.PENDING:
            record = attempted(record, outcome(record.next_at, 500), 0.0)
        record = resent(record, record.next_at + 1.0)

    assert record.state is DeliveryState.PENDING
    assert record.tried == 0
    assert len(record.attempts) == ATTEMPTS_KEPT


def test_what_nobody_is_there_for_is_given_up() -> None:
    """With the reason as its last attempt."""
    record = given_up(FRESH, 7.0, "the webhook is disabled")

    assert record.state is DeliveryState.FAILED
    assert record.attempts == (DeliveryAttempt(at=7.0, ms=0.0, error="the webhook is disabled"),)


def test_a_webhook_that_fails_for_a_whole_schedule_is_disabled() -> None:
    """From its first failure after a success; one success in between starts anew."""
    failing = judged(WEBHOOK, outcome(100.0, 500))
    assert (failing.failing_since, failing.disabled) == (100.0, "")
    assert judged(failing, outcome(200.0, 200)) == WEBHOOK

    almost = judged(failing, outcome(99.0 + WHOLE_SCHEDULE_S, 0))
    assert not almost.disabled
    over = judged(almost, outcome(100.0 + WHOLE_SCHEDULE_S, 302))
    assert over.disabled == "nothing was delivered for 76 hours"
    assert judged(over, outcome(1e9, 200)) == over


def test_a_webhook_that_answers_gone_is_disabled_at_once() -> None:
    """As Standard Webhooks has it."""
    assert judged(WEBHOOK, outcome(1.0, 410)).disabled == "it answered 410 Gone"


def test_a_success_with_an_error_is_none() -> None:
    """A status that came before the time was over."""
    late = structs.replace(outcome(1.0, 200), attempt=DeliveryAttempt(at=1.0, ms=1.0, status=200, error="cut off"))

    assert not late.delivered
