"""Every case of a request with a key."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import CODES, error_from_code
from pilotlight_gateway.idempotency.key_decision import (
    ClaimKey,
    FailureRetention,
    KeyBusy,
    RefuseKey,
    ReplayAnswer,
    decide,
    decide_orphaned,
    fate_of,
    in_use,
    is_over,
)
from pilotlight_gateway.idempotency.key_record import CallOwner, StoredAnswer, StoredFirstCall, begun, ended, voided

FIRST = begun(b"f", "call_1", CallOwner(name="gw", instance="gw-1"), at=1000.0, timeout_s=30.0)
ANSWER = StoredAnswer(status=200, headers=(), body=b"x")


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (None, ClaimKey(0)),
        (StoredFirstCall(None, 3), ClaimKey(3)),
        (StoredFirstCall(voided(FIRST), 4), ClaimKey(4)),
        (StoredFirstCall(FIRST, 5), KeyBusy(FIRST, 5)),
        (StoredFirstCall(ended(FIRST, ANSWER), 6), ReplayAnswer("call_1", ANSWER)),
    ],
)
def test_the_same_request_runs_waits_or_is_answered(found: StoredFirstCall | None, verdict: object) -> None:
    """As its record says."""
    assert decide(found, b"f") == verdict


@pytest.mark.parametrize("found", [StoredFirstCall(FIRST, 5), StoredFirstCall(ended(FIRST, ANSWER), 6)])
def test_another_request_is_refused(found: StoredFirstCall) -> None:
    """Whether the first one runs or has ended; and it is not told what that one said."""
    verdict = decide(found, b"other")

    assert isinstance(verdict, RefuseKey)
    assert (verdict.error.wire_code, verdict.error.meaning.status) == ("idempotency_key_reused", 422)


def test_a_void_key_may_be_used_for_anything() -> None:
    """Nothing was done with it."""
    assert decide(StoredFirstCall(voided(FIRST), 4), b"other") == ClaimKey(4)


def test_an_answer_that_was_too_large_is_told_so() -> None:
    """The call has run, and does not run again."""
    verdict = decide(StoredFirstCall(ended(FIRST, ANSWER, keep=False), 6), b"f")

    assert isinstance(verdict, RefuseKey)
    assert (verdict.error.wire_code, verdict.error.meaning.status) == ("answer_not_kept", 410)
    assert "status 200" in verdict.error.detail


def test_a_call_whose_gateway_is_gone_runs_again_only_if_it_may() -> None:
    """It may have started: only an idempotent function is run again."""
    lost = decide_orphaned(KeyBusy(FIRST, 5), idempotent=False)

    assert decide_orphaned(KeyBusy(FIRST, 5), idempotent=True) == ClaimKey(5)
    assert isinstance(lost, RefuseKey)
    assert (lost.error.wire_code, lost.error.meaning.status) == ("call_lost", 410)


def test_a_call_is_over_when_its_time_is() -> None:
    """Not before its deadline and the grace."""
    assert not is_over(FIRST, FIRST.ends_at)
    assert is_over(FIRST, FIRST.ends_at + 0.1)


@pytest.mark.parametrize(
    ("at", "wait"), [(999.0, 1.0), (1000.1, 1.0), (1008.0, 8.0), (1085.0, 5.0), (1089.9, 1.0), (2000.0, 1.0)]
)
def test_what_has_lasted_is_expected_to_last_as_long_again(at: float, wait: float) -> None:
    """Within a second and a minute, and the call's own time; a clock that is behind says nothing."""
    error = in_use(FIRST, at)

    assert error.retry_after == pytest.approx(wait)
    assert (error.meaning.status, error.meaning.retry) == (409, True)


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_call_that_may_have_run_is_never_forgotten(code: str) -> None:
    """Only errors that prove that it did not run free its key; an idempotent function is freer."""
    error = error_from_code(code, "x")
    not_taken = {
        "queue_full", "rate_limited", "budget_exhausted", "no_capacity", "breaker_open", "starting", "load_failed",
        "misconfigured",
    }  # fmt: skip
    on_the_way = {"container_died", "preempted", "overloaded", "internal", "deadline_exceeded", "draining"}

    assert (fate_of(error, idempotent=False) is FailureRetention.FORGET) == (code in not_taken)
    assert (fate_of(error, idempotent=True) is FailureRetention.FORGET) == (code in not_taken | on_the_way)
