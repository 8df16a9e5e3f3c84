"""Circuit breakers of containers: what counts, and when they open."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.agent_messages import Outcome
from pilotlight_gateway.home.breakers import CONTAINER_FAILURES, LATEST_MS, ContainerBreaker, State, Verdict, verdict


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.OK, Verdict.FINE),
        (Outcome.BAD_INPUT, Verdict.FINE),
        (Outcome.RAISED, Verdict.RAISED),
        (Outcome.BAD_OUTPUT, Verdict.RAISED),
        (Outcome.DIED, Verdict.LOST),
        (Outcome.TIMEOUT, Verdict.LOST),
        (Outcome.LOAD_FAILED, Verdict.LOST),
        (Outcome.CANCELLED, Verdict.NOTHING),
        (None, Verdict.NOTHING),
    ],
)
def test_what_an_end_says_of_where_it_ran(outcome: Outcome | None, expected: Verdict) -> None:
    """Every outcome means something or nothing."""
    assert verdict(outcome, 10.0, 5.0) is expected


def test_a_caller_with_little_patience_proves_nothing() -> None:
    """Only a call that was held for far longer than is usual was kept by its container."""
    assert verdict(Outcome.CANCELLED, LATEST_MS + 1.0, 1_000.0) is Verdict.NOTHING
    assert verdict(Outcome.CANCELLED, LATEST_MS - 1.0, 10.0) is Verdict.NOTHING
    assert verdict(Outcome.CANCELLED, LATEST_MS + 1.0, None) is Verdict.NOTHING
    assert verdict(Outcome.CANCELLED, LATEST_MS + 1.0, 10.0) is Verdict.LATE


def keep(breaker: ContainerBreaker, found: Verdict, *tenants: str, **fine: float) -> State:
    """As many calls as open it end in a row, of these tenants in turn."""
    for n in range(CONTAINER_FAILURES):
        breaker.note(found, str(n), tenants[n % len(tenants)], fine, 1.0)
    return breaker.state


def test_a_container_that_keeps_the_calls_of_several_is_broken() -> None:
    """Five calls in a row that were held far too long; one answer in between starts anew."""
    breaker = ContainerBreaker()
    for n in range(CONTAINER_FAILURES - 1):
        breaker.note(Verdict.LATE, str(n), "ab"[n % 2], {"c": 0.0}, 1.0)
    breaker.note(Verdict.FINE, "x", "c", {}, 1.0)
    assert breaker.state is State.CLOSED
    assert keep(breaker, Verdict.LATE, "a", "b", c=0.0) is State.OPEN


@pytest.mark.parametrize("found", [Verdict.LATE, Verdict.RAISED])
def test_one_tenants_failing_calls_break_no_container_for_others(found: Verdict) -> None:
    """They may be its inputs. If another container answered that very tenant meanwhile, they are not."""
    assert keep(ContainerBreaker(), found, "bad", fine=9.0) is State.CLOSED
    assert keep(ContainerBreaker(), found, "bad", bad=0.5, fine=9.0) is State.CLOSED
    assert keep(ContainerBreaker(), found, "bad", bad=1.5, fine=9.0) is State.OPEN


def test_whoever_is_alone_is_told_apart_by_nothing() -> None:
    """Where only one tenant calls, what is held far too long shows the container, and shuts nobody else out."""
    assert keep(ContainerBreaker(), Verdict.LATE, "only") is State.OPEN
    assert keep(ContainerBreaker(), Verdict.LATE, "only", only=0.5) is State.OPEN
    assert keep(ContainerBreaker(), Verdict.RAISED, "only", only=0.5) is State.CLOSED
