"""Circuit breakers: what counts as a failure, whose calls are refused for it, and how they are let in again."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_gateway.home.breakers import (
    CONTAINER_FAILURES,
    EVERYBODY,
    FIRST_PAUSE_S,
    LATEST_MS,
    LONGEST_PAUSE_S,
    PROBE_S,
    TENANTS_AT_MOST,
    VERSION_FAILURES,
    CircuitState,
    ContainerBreaker,
    ContainerVerdict,
    LossAttribution,
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
def test_the_verdict_on_a_container_follows_from_the_outcome(
    outcome: Outcome | None, expected: ContainerVerdict
) -> None:
    """Answers and bad inputs prove a container fine, exceptions and losses do not, other outcomes prove nothing."""
    assert verdict(outcome, 10.0, 5.0) is expected


def test_a_caller_that_gives_up_early_proves_nothing() -> None:
    """Only a cancelled call that was held far longer than usual counts against its container."""
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
    """They may be due to its inputs, unless another container answered the same tenant meanwhile."""
    assert keep(ContainerBreaker(), found, "bad", fine=9.0) is CircuitState.CLOSED
    assert keep(ContainerBreaker(), found, "bad", bad=0.5, fine=9.0) is CircuitState.CLOSED
    assert keep(ContainerBreaker(), found, "bad", bad=1.5, fine=9.0) is CircuitState.OPEN


def test_a_version_with_one_tenant_blames_its_container() -> None:
    """Calls that are held far too long open the breaker, as no other tenant is affected; exceptions do not."""
    assert keep(ContainerBreaker(), ContainerVerdict.LATE, "only") is CircuitState.OPEN
    assert keep(ContainerBreaker(), ContainerVerdict.LATE, "only", only=0.5) is CircuitState.OPEN
    assert keep(ContainerBreaker(), ContainerVerdict.RAISED, "only", only=0.5) is CircuitState.CLOSED


def lose(losses: LossAttribution, *rows: str, at: float = 0.0, name: str = "c") -> list[str]:
    """Containers are lost one after the other; each held calls of the tenants that its letters name."""
    opened = []
    for n, row in enumerate(rows):
        opened += losses.lost(f"{name}{n}", row, "exit code 139", at)
    return opened


def refused(losses: LossAttribution, at: float = 0.0) -> str:
    """Which of the tenants a to e are refused."""
    shut = ""
    for tenant in "abcde":
        try:
            losses.admit(f"call of {tenant}", tenant, at)
        except Unavailable:
            shut += tenant
        losses.withdrawn(f"call of {tenant}", tenant, at)
    return shut


FIVE = VERSION_FAILURES


def test_inputs_of_one_tenant_open_only_its_own_breaker() -> None:
    """However many containers crash on them, other tenants are let in."""
    losses = LossAttribution()
    assert lose(losses, *["a"] * FIVE) == ["a"]
    assert refused(losses) == "a"
    lose(losses, *["a"] * 50, name="d")
    assert (refused(losses), losses.everybody.state) == ("a", CircuitState.CLOSED)


def test_a_version_that_cannot_be_loaded_refuses_all_tenants() -> None:
    """A container that fails to load holds no calls, so no tenant explains the loss."""
    losses = LossAttribution()
    assert lose(losses, *[""] * (FIVE - 1)) == []
    assert lose(losses, "", name="d") == [EVERYBODY]
    assert refused(losses) == "abcde"


@pytest.mark.parametrize(
    ("rows", "opened"),
    [
        ("abcde", [EVERYBODY]),
        ("aaabb", [EVERYBODY]),
        ("aaaab", []),  # one of another tenant may be chance
        ("baaaaa", ["a"]),
    ],
)
def test_containers_that_crash_for_every_tenant_refuse_all_tenants(rows: str, opened: list[str]) -> None:
    """A row that one tenant explains opens only the breaker of that tenant."""
    assert lose(LossAttribution(), *rows) == opened


def test_an_innocent_tenant_in_the_same_containers_is_cleared_by_its_answers() -> None:
    """The loss counts only against the tenant with more losses in a row."""
    losses = LossAttribution()
    lose(losses, "ab")
    losses.answered(ContainerVerdict.FINE, "b")
    assert lose(losses, *["ab"] * FIVE, name="d") == ["a"]
    assert refused(losses) == "a"


def test_an_answer_ends_the_rows_of_its_tenant_and_of_the_version() -> None:
    """An exception is an answer too; the rows of other tenants go on."""
    losses = LossAttribution()
    lose(losses, *["a"] * (FIVE - 1))
    losses.answered(ContainerVerdict.RAISED, "b")
    assert lose(losses, "a", name="d") == ["a"]

    losses = LossAttribution()
    lose(losses, *["a"] * (FIVE - 1))
    losses.answered(ContainerVerdict.RAISED, "a")
    losses.answered(ContainerVerdict.NOTHING, "a")
    assert lose(losses, *["a"] * (FIVE - 1), name="d") == []
    assert lose(losses, *[""] * (FIVE - 1), name="e") == [EVERYBODY]


def test_a_container_counts_once_however_many_calls_it_held() -> None:
    """Sixty calls in one container are one loss, and so is a repeated report."""
    losses = LossAttribution()
    for _ in range(60):
        assert losses.lost("c1", "a", "", 1.0) == []
    assert losses.breaker_of("a").failures == losses.breaker_of(EVERYBODY).failures == 1


@pytest.mark.parametrize("held", ["a", ""])
def test_a_refusal_has_its_reason_and_the_end_of_the_pause(held: str) -> None:
    """The error is 503 `breaker_open`; after the pause one call is let in, and later ones wait for its result."""
    losses = LossAttribution()
    lose(losses, *[held] * FIVE, at=10.0)
    with pytest.raises(Unavailable) as caught:
        losses.admit("x", "a", 10.0 + FIRST_PAUSE_S / 4)
    assert caught.value.wire_code == "breaker_open"
    assert caught.value.retry_after == pytest.approx(FIRST_PAUSE_S * 3 / 4)
    assert "exit code 139" in caught.value.detail

    losses.admit("probe", "a", 10.0 + FIRST_PAUSE_S)
    losses.admit("probe", "a", 10.0 + FIRST_PAUSE_S)
    with pytest.raises(Unavailable):
        losses.admit("other", "a", 10.0 + FIRST_PAUSE_S)
    losses.answered(ContainerVerdict.FINE, "a")
    losses.admit("other", "a", 12.0)


@pytest.mark.parametrize("held", ["a", "", "ab"])
def test_a_probe_that_fails_makes_the_next_pause_longer(held: str) -> None:
    """Each pause is twice as long, up to a bound, also if another tenant's call was in the container."""
    losses, at = LossAttribution(), 0.0
    lose(losses, *[held[:1]] * FIVE, at=at)
    breaker = losses.breaker_of(held[:1])
    pauses = []
    for n in range(8):
        pauses.append(breaker.until - at)
        at = breaker.until
        losses.admit(f"probe{n}", "a", at)
        assert losses.lost(f"p{n}", held, "", at)
    assert pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert pauses[-1] == LONGEST_PAUSE_S


def test_a_probe_without_a_result_is_replaced() -> None:
    """At once if it was withdrawn or refused for another reason, otherwise after PROBE_S."""
    losses = LossAttribution()
    lose(losses, *["a"] * FIVE)
    losses.admit("one", "a", 2.0)
    losses.withdrawn("other", "a", 2.1)
    with pytest.raises(Unavailable):
        losses.admit("two", "a", 2.2)
    losses.withdrawn("one", "a", 2.3)
    losses.admit("two", "a", 2.3)
    with pytest.raises(Unavailable):
        losses.admit("three", "a", 2.4)
    losses.admit("three", "a", 2.3 + PROBE_S)

    losses.withdrawn("three", "a", 70.0)
    lose(losses, *[""] * FIVE, at=70.0, name="d")
    with pytest.raises(Unavailable):
        losses.admit("four", "a", 70.0)
    losses.admit("four", "a", 70.0 + FIRST_PAUSE_S)


def test_no_more_tenants_are_known_than_allowed() -> None:
    """Beyond the bound the tenant whose last loss is the oldest is forgotten."""
    losses = LossAttribution()
    for n in range(TENANTS_AT_MOST + 10):
        losses.lost(f"c{n}", (f"t{n}",), "", float(n))
    assert len(losses.tenants) == TENANTS_AT_MOST
    assert "t9" not in losses.tenants


@given(
    steps=st.lists(
        st.tuples(st.sampled_from("lfaw"), st.sampled_from(["", "a", "b", "ab"]), st.integers(0, 30)), max_size=120
    )
)
def test_a_breaker_never_stays_shut_for_longer_than_its_pause(steps: list[tuple[str, str, int]]) -> None:
    """In any history a call of any tenant is let in once the longest pause and the wait for a probe are over."""
    losses, at = LossAttribution(), 0.0
    for number, (step, held, seconds) in enumerate(steps):
        at += seconds / 10.0
        if step == "l":
            losses.lost(str(number), held, "", at)
        elif step == "f":
            losses.answered(ContainerVerdict.FINE, held[:1])
        elif step == "w":
            losses.withdrawn(losses.everybody.probe, "a", at)
        else:
            with suppress(Unavailable):
                losses.admit(str(number), held[:1], at)
        retry_after = losses.everybody.refusal(at).retry_after
        assert retry_after is not None
        assert 0.0 <= retry_after <= LONGEST_PAUSE_S
    for tenant in "abc":
        losses.admit(f"of {tenant}", tenant, at + max(LONGEST_PAUSE_S, PROBE_S))
        losses.answered(ContainerVerdict.FINE, tenant)
