"""Circuit breakers of containers: what counts, and when they open."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.agent_messages import Outcome
from pilotlight_gateway.home.breakers import (
    CONTAINER_FAILURES,
    LATEST_MS,
    CircuitState,
    ContainerBreaker,
    ContainerVerdict,
    verdict,
)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.OK, ContainerVerdict.FINE),
        (Outcome.BAD_INPUT, ContainerVerdict.FINE),
        (Outcome.RAISED, ContainerVerdict.RAISED),
        (Outcome.BAD_OUTPUT, ContainerVerdict.RAISED),
        (Outcome.DIED, ContainerVerdict.LOST),
        (Outcome.TIMEOUT, ContainerVerdict.LOST),
        (Outcome.LOAD_FAILED, ContainerVerdict.LOST),
        (Outcome.CANCELLED, ContainerVerdict.NOTHING),
        (None, ContainerVerdict.NOTHING),
    ],
)
def test_what_an_end_says_of_where_it_ran(outcome: Outcome | None, expected: ContainerVerdict) -> None:
    """Every outcome means something or nothing."""
    assert verdict(outcome, 10.0, 5.0) is expected


def test_a_caller_with_little_patience_proves_nothing() -> None:
    """Only a call that was held for far longer than is usual was kept by its container."""
    assert verdict(Outcome.CANCELLED, LATEST_MS + 1.0, 1_000.0) is ContainerVerdict.NOTHING
    assert verdict(Outcome.CANCELLED, LATEST_MS - 1.0, 10.0) is ContainerVerdict.NOTHING
    assert verdict(Outcome.CANCELLED, LATEST_MS + 1.0, None) is ContainerVerdict.NOTHING
    assert verdict(Outcome.CANCELLED, LATEST_MS + 1.0, 10.0) is ContainerVerdict.LATE


def keep(breaker: ContainerBreaker, found: ContainerVerdict, *tenants: str, **fine: float) -> CircuitState:
    """As many calls as open it end in a row, of these tenants in turn."""
    for n in range(CONTAINER_FAILURES):
        breaker.note(found, str(n), tenants[n % len(tenants)], fine, 1.0)
    return breaker.state


def test_a_container_that_keeps_the_calls_of_several_is_broken() -> None:
    """Five calls in a row that were held far too long; one answer in between starts anew."""
    breaker = ContainerBreaker()
    for n in range(CONTAINER_FAILURES - 1):
        breaker.note(ContainerVerdict.LATE, str(n), "ab"[n % 2], {"c": 0.0}, 1.0)
    breaker.note(ContainerVerdict.FINE, "x", "c", {}, 1.0)
    assert breaker.state is CircuitState.CLOSED
    assert keep(breaker, ContainerVerdict.LATE, "a", "b", c=0.0) is CircuitState.OPEN


@pytest.mark.parametrize("found", [ContainerVerdict.LATE, ContainerVerdict.RAISED])
def test_one_tenants_failing_calls_break_no_container_for_others(found: ContainerVerdict) -> None:
    """They may be its inputs. If another container answered that very tenant meanwhile, they are not."""
    assert keep(ContainerBreaker(), found, "bad", fine=9.0) is CircuitState.CLOSED
    assert keep(ContainerBreaker(), found, "bad", bad=0.5, fine=9.0) is CircuitState.CLOSED
    assert keep(ContainerBreaker(), found, "bad", bad=1.5, fine=9.0) is CircuitState.OPEN


def test_whoever_is_alone_is_told_apart_by_nothing() -> None:
    """Where only one tenant calls, what is held far too long shows the container, and shuts nobody else out."""
    assert keep(ContainerBreaker(), ContainerVerdict.LATE, "only") is CircuitState.OPEN
    assert keep(ContainerBreaker(), ContainerVerdict.LATE, "only", only=0.5) is CircuitState.OPEN
    assert keep(ContainerBreaker(), ContainerVerdict.RAISED, "only", only=0.5) is CircuitState.CLOSED
