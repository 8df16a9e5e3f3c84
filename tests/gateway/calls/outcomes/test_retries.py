"""How often a call is tried again: placed elsewhere, run again when it was lost, retried when it raised."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import (
    ContainerDied,
    FunctionRaised,
    Unavailable,
)
from pilotlight_core.model.messages.call_messages import (
    Outcome,
    Refusal,
    Refused,
)
from pilotlight_core.model.messages.scheduling import Enqueue
from pilotlight_gateway.calls.outcomes.retries import MAX_PLACEMENTS, MAX_RERUNS
from tests.builders.calls import grant
from tests.gateway.calls.origin_steps import (
    RAISED,
    ended,
    error_of,
    kinds,
    lose,
    queued,
    sent,
)


def test_placements_are_bounded() -> None:
    """A call that ten containers turned away fails instead of wandering for ever."""
    origin = queued()
    for number in range(1, MAX_PLACEMENTS):
        origin.granted(grant(number), 1.0)
        refused = Refused(call_id="a", grant_number=number, container="c1", reason=Refusal.NO_SLOT)
        assert kinds(origin.frame("n1", refused, 1.0)) == ["HandBack"]
    origin.granted(grant(MAX_PLACEMENTS), 1.0)
    refused = Refused(call_id="a", grant_number=MAX_PLACEMENTS, container="c1", reason=Refusal.NO_SLOT)
    assert isinstance(error_of(origin.frame("n1", refused, 1.0)), Unavailable)


@pytest.mark.parametrize("how", ["node", "container"])
def test_an_idempotent_call_is_run_again_at_most_twice(how: str) -> None:
    """Three starts in all, then container_died."""
    origin = queued(idempotent=True)
    for number in range(1, MAX_RERUNS + 1):
        origin.granted(grant(number), float(number))
        assert "Enqueue" in kinds(lose(origin, number + 0.5, how))
    origin.granted(grant(MAX_RERUNS + 1), 8.0)
    assert isinstance(error_of(lose(origin, 9.0, how)), ContainerDied)


def test_code_that_raised_is_retried_after_a_backoff() -> None:
    """`retries=` times, each wait twice as long."""
    origin = queued(retries=2)
    for number, wait in ((1, 0.1), (2, 0.2)):
        at = float(number)
        origin.granted(grant(number), at)
        assert kinds(origin.frame("n1", ended(Outcome.RAISED, number, error=RAISED), at)) == ["Settle"]
        assert origin.wake_at == pytest.approx(at + wait)
        assert origin.tick(at + wait / 2) == []
        (enqueue,) = origin.tick(at + wait)
        assert isinstance(enqueue, Enqueue)
        assert (enqueue.call.grant_number, enqueue.call.admitted) == (number, True)
    origin.granted(grant(3), 3.0)
    assert isinstance(error_of(origin.frame("n1", ended(Outcome.RAISED, 3, error=RAISED), 3.1)), FunctionRaised)


def test_a_retry_that_the_deadline_does_not_allow_is_not_begun() -> None:
    """The caller gets the function's error, not a timeout."""
    origin = sent(retries=3, deadline_at=2.05)
    assert isinstance(error_of(origin.frame("n1", ended(Outcome.RAISED, error=RAISED), 2.0)), FunctionRaised)
