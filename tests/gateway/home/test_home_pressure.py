"""The home under pressure: queue age, shedding as capacity shrinks, breakers, streams, reserves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import PilotlightError, TooMuch, Unavailable
from pilotlight_core.model.messages.call_messages import CallDescriptor, Outcome, RemoteError
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.messages.scheduling import BreakerReport, Dropped
from pilotlight_gateway.home.breakers import CONTAINER_FAILURES, FIRST_PAUSE_S, VERSION_FAILURES
from pilotlight_gateway.home.container_pool import QUARANTINE_AFTER_S
from pilotlight_gateway.home.home import REFRESH_EVERY_S, Home
from pilotlight_gateway.home.version_queue import GRACE_S
from tests.builders.calls import call, credit
from tests.example_counts import examples

RANKS = {"free": 0, "paid": 1, "enterprise": 2}


@pytest.fixture
def home() -> Home:
    return Home(gateway="gw1", epoch=7)


def turn(home: Home, at: float) -> tuple[list[Dropped], list[str]]:
    """Expire, grant and publish demand as the driver does; returns what was dropped and granted."""
    dropped, grants = home.expire(at), home.grants(at)
    home.demand(at)
    home.check_integrity()
    return dropped, [grant.call_id for grant in grants]


def run(home: Home, name: str, at: float, seconds: float = 0.1, container: str = "c1", **more: Any) -> None:
    """A whole call."""
    home.enqueue(call(name, **more), at)
    assert name in turn(home, at)[1]
    home.done(name, container, 1, at + seconds, cost=1000.0 * seconds, outcome=Outcome.OK)


def heartbeat(home: Home, at: float, *containers: str, **more: Any) -> None:
    for container in containers:
        home.on_credit(credit(container, int(at * 1000) + 1, **more), at)


def fill(home: Home, at: float, slots: int, each: dict[str, int], seconds: float) -> None:
    """Busy containers, and calls of several tiers behind them."""
    for n in range(slots):
        home.enqueue(call(f"busy{n}", "busy", remaining_ms=600_000.0), at)
    assert len(turn(home, at)[1]) == slots
    for tier, count in each.items():
        for n in range(count):
            home.enqueue(
                call(
                    f"{tier}{n}", tier, tier_rank=RANKS[tier], weight=4.0 ** RANKS[tier], remaining_ms=seconds * 1000.0
                ),
                at,
            )


def test_a_call_past_its_queue_age_is_dropped_and_never_runs(home: Home) -> None:
    """The tenant's limit on waiting applies before the deadline: 429 with the expected wait."""
    home.on_credit(credit(), 0.0)
    run(home, "first", 0.0, 1.0)
    home.enqueue(call("holds"), 1.0)
    home.enqueue(call("aged", queue_ms=1_200.0), 1.0)
    turn(home, 1.0)
    assert turn(home, 2.1) == ([], [])
    ((dropped,), granted) = turn(home, 2.3)
    assert (dropped.call_id, dropped.code, granted) == ("aged", "queue_full", [])
    assert dropped.retry_after == pytest.approx(1.0, rel=0.2)
    home.done("holds", "c1", 1, 2.4)
    assert turn(home, 2.4) == ([], [])


def test_a_call_that_is_too_late_takes_no_turn_from_others(home: Home) -> None:
    """After a stall its slot goes to a call that can be done; without other calls it may try."""
    home.on_credit(credit(), 0.0)
    for n in range(5):
        run(home, f"warm{n}", 0.0, 1.0)
    home.enqueue(call("holds"), 1.0)
    turn(home, 1.0)
    home.enqueue(call("late", remaining_ms=2_400.0), 1.0)
    home.enqueue(call("next"), 1.0)
    home.on_credit(credit("c1", 2, "holds"), 3.0)
    home.done("holds", "c1", 1, 3.0, outcome=Outcome.OK)
    dropped, granted = home.expire(3.0), [grant.call_id for grant in home.grants(3.0)]
    assert (dropped, granted) == ([], ["next"])
    assert [(d.call_id, d.code) for d in turn(home, 3.0)[0]] == [("late", "deadline_exceeded")]

    home.enqueue(call("alone", remaining_ms=200.0, admitted=True), 3.1)
    home.done("next", "c1", 1, 3.2, outcome=Outcome.OK)
    assert turn(home, 3.2)[1] == ["alone"]


def test_a_full_queue_is_shed_in_the_order_of_tiers_when_a_container_is_lost(home: Home) -> None:
    """Within two seconds free goes before paid before enterprise, and calls that can still be served stay."""
    heartbeat(home, 0.0, "c1", "c2", slots=4)
    for n in range(20):
        run(home, f"warm{n}", 0.0)
    fill(home, 1.0, 8, {"free": 40, "paid": 40, "enterprise": 40}, 2.0)
    assert turn(home, 1.5)[0] == []
    home.on_credit(credit("c2", 10**6, slots=4, state=ContainerState.GONE), 1.6)
    dropped: list[Dropped] = []
    at = 1.6
    while not dropped:
        at += REFRESH_EVERY_S
        dropped, _ = turn(home, at)
        assert at - 1.6 < 2.0
    tiers = [d.call_id.rstrip("0123456789") for d in dropped]
    assert set(tiers) <= {"free", "paid"}
    assert "free" in tiers
    assert {d.code for d in dropped} == {"no_capacity"}
    assert all(d.retry_after is not None and 0.0 < d.retry_after < 6.0 for d in dropped)
    assert home.statistics(at).shed[0] >= 20


def test_capacity_that_is_replaced_at_once_costs_no_call(home: Home) -> None:
    """A container that replaces a lost one within moments saves the queue."""
    heartbeat(home, 0.0, "c1", "c2", slots=4)
    for n in range(20):
        run(home, f"warm{n}", 0.0)
    fill(home, 1.0, 8, {"free": 100}, 2.5)
    turn(home, 1.2)
    home.on_credit(credit("c2", 10**6, slots=4, state=ContainerState.GONE), 1.25)
    assert turn(home, 1.3)[0] == []
    home.on_credit(credit("c3", 10**6 + 1, slots=4), 1.25 + GRACE_S / 2)
    assert turn(home, 1.25 + GRACE_S / 2)[0] == []
    assert turn(home, 1.3 + GRACE_S)[0] == []


def test_admission_tightens_at_once_and_loosens_as_capacity_returns(home: Home) -> None:
    """The bus reports a lost agent, and later it returns."""
    heartbeat(home, 0.0, "c1", "c2", slots=4)
    for n in range(20):
        run(home, f"warm{n}", 0.0)
    fill(home, 0.5, 8, {"paid": 60}, 60.0)
    home.enqueue(call("fits", "paid", tier_rank=1, weight=4.0, remaining_ms=1_200.0), 0.5)
    home.on_node_unheard("n1", 0.6)
    heartbeat(home, 0.6, "c1", slots=1)
    with pytest.raises(TooMuch) as caught:
        home.enqueue(call("late", "paid", tier_rank=1, weight=4.0, remaining_ms=1_200.0), 0.6)
    assert caught.value.retry_after is not None
    assert caught.value.retry_after > 2.0
    heartbeat(home, 0.7, "c1", "c2", "c3", slots=4)
    home.enqueue(call("again", "paid", tier_rank=1, weight=4.0, remaining_ms=1_200.0), 0.7)


def test_a_frozen_node_is_noticed_without_any_event(home: Home) -> None:
    """Silence is no event, so the home checks by itself and sheds within four seconds."""
    heartbeat(home, 0.0, "c1", slots=4)
    home.on_credit(credit("c2", 1, slots=4, node="n2"), 0.0)
    for n in range(20):
        run(home, f"warm{n}", 0.0)
    heartbeat(home, 0.5, "c1", slots=4)
    home.on_credit(credit("c2", 501, slots=4, node="n2"), 0.5)
    fill(home, 0.5, 8, {"free": 240}, 8.0)
    at, dropped = 0.5, list[Dropped]()
    held = [f"busy{n}" for n in range(8)]
    while not dropped and at < 6.0:
        wake = home.next_wake()
        assert wake is not None
        at = max(at + 0.001, wake)
        home.on_credit(credit("c1", int(at * 1000) + 1, *held[:4], slots=4), at)
        dropped, _ = turn(home, at)
    assert QUARANTINE_AFTER_S < at - 0.5 < 4.0


def kill(home: Home, *tenants: str) -> float:
    """Containers come, work on a call of each of these tenants, and die of it; returns the instant of the last."""
    for n, tenant in enumerate(tenants):
        home.on_credit(credit(f"c{n}", 10 + n), float(n))
        home.enqueue(call(f"a{n}", tenant), float(n))
        assert turn(home, float(n))[1] == [f"a{n}"]
        if n == VERSION_FAILURES - 1:
            home.enqueue(call("waits", "t0"), float(n))
            home.enqueue(call("waits too", "t1"), float(n))
        home.on_credit(credit(f"c{n}", 20 + n, state=ContainerState.GONE), n + 0.5)
        home.done(f"a{n}", f"c{n}", 1, n + 0.5, outcome=Outcome.DIED)
    return len(tenants) - 0.5


def test_a_version_whose_containers_crash_in_a_row_is_refused(home: Home) -> None:
    """New and waiting calls get `breaker_open`, then one call probes, then all are let in."""
    at = kill(home, "t0", "t1", "t0", "t1", "t2")
    (dropped, _) = turn(home, at)
    assert [(d.call_id, d.code, d.retry_after) for d in dropped] == [
        (name, "breaker_open", FIRST_PAUSE_S) for name in ("waits", "waits too")
    ]
    with pytest.raises(Unavailable) as caught:
        home.enqueue(call("refused", "t9"), at)
    assert caught.value.wire_code == "breaker_open"
    assert home.breakers(at)[0] == BreakerReport(
        version="ver_1", state="open", failures=VERSION_FAILURES, retry_after=FIRST_PAUSE_S
    )
    assert home.statistics(at).breakers.versions == 1

    at += FIRST_PAUSE_S
    home.on_credit(credit("new", 90), at)
    home.enqueue(call("probe", "t9"), at)
    with pytest.raises(Unavailable):
        home.enqueue(call("other", "t8"), at)
    assert turn(home, at)[1] == ["probe"]
    home.done("probe", "new", 1, at + 0.1, outcome=Outcome.OK)
    home.enqueue(call("other", "t8"), at + 0.2)
    assert home.statistics(at).breakers.versions == 0


def test_a_tenant_whose_calls_crash_containers_is_refused_alone(home: Home) -> None:
    """Its new and waiting calls are refused, while those of other tenants wait and run."""
    at = kill(home, *["t0"] * VERSION_FAILURES)
    ((dropped,), _) = turn(home, at)
    assert (dropped.call_id, dropped.code, dropped.retry_after) == ("waits", "breaker_open", FIRST_PAUSE_S)
    with pytest.raises(Unavailable, match="calls of this tenant"):
        home.enqueue(call("refused", "t0"), at)
    assert (home.statistics(at).breakers.versions, home.statistics(at).breakers.tenants) == (0, 1)
    assert home.breakers(at)[1] == BreakerReport(
        version="ver_1", tenant="t0", state="open", failures=VERSION_FAILURES, retry_after=FIRST_PAUSE_S
    )

    home.on_credit(credit("new", 90), at)
    assert turn(home, at)[1] == ["waits too"]


def test_a_timeout_counts_against_the_call_that_ran_too_long(home: Home) -> None:
    """Calls beside it in the killed container are not blamed."""
    for n in range(VERSION_FAILURES):
        at = float(n)
        home.on_credit(credit(f"c{n}", 10 + n, slots=2), at)
        home.enqueue(call(f"slow{n}", "t0"), at)
        home.enqueue(call(f"quick{n}", "t1"), at)
        assert len(turn(home, at)[1]) == 2
        home.done(f"slow{n}", f"c{n}", 1, at + 0.5, outcome=Outcome.TIMEOUT)
        home.done(f"quick{n}", f"c{n}", 1, at + 0.5, outcome=Outcome.DIED)
        home.on_credit(credit(f"c{n}", 20 + n, state=ContainerState.GONE), at + 0.5)
    with pytest.raises(Unavailable):
        home.enqueue(call("a", "t0"), at + 0.6)
    home.enqueue(call("b", "t1"), at + 0.6)


def test_a_probe_that_is_cancelled_lets_another_go(home: Home) -> None:
    """A caller that leaves must not keep the breaker open."""
    error = RemoteError("ImportError", "no module named numpi")
    for n in range(VERSION_FAILURES):
        home.on_credit(credit(f"c{n}", n + 1, state=ContainerState.GONE, error=error), 0.0)
    with pytest.raises(Unavailable) as caught:
        home.enqueue(call("a"), 0.1)
    assert "numpi" in caught.value.detail
    home.enqueue(call("probe"), FIRST_PAUSE_S + 0.1)
    assert home.cancel("probe")
    home.enqueue(call("next"), FIRST_PAUSE_S + 0.2)


def test_a_container_that_alone_fails_is_listed_and_passed_over(home: Home) -> None:
    """The other containers answer, so it gets no calls until its probe."""
    home.on_credit(credit("good", 1, slots=1), 0.0)
    home.on_credit(credit("bad", 2, slots=1), 0.0)
    for n in range(CONTAINER_FAILURES):
        home.enqueue(call(f"x{n}"), 0.0)
        home.enqueue(call(f"y{n}"), 0.0)
        for grant in home.grants(0.0):
            outcome = Outcome.RAISED if grant.container == "bad" else Outcome.OK
            home.done(grant.call_id, grant.container, grant.grant_number, 0.01, cost=1.0, outcome=outcome)
    assert [(told.container, told.state) for told in home.breakers(0.1)] == [("bad", "open")]
    home.enqueue(call("a"), 0.1)
    home.enqueue(call("b"), 0.1)
    assert [grant.container for grant in home.grants(0.1)] == ["good"]
    assert home.statistics(0.1).breakers.containers == 1
    at = 0.1 + FIRST_PAUSE_S
    assert turn(home, at) == ([], ["b"])


def test_a_stream_is_charged_while_it_runs(home: Home) -> None:
    """A tenant with long calls does not get all slots before the first has ended."""
    home.on_credit(credit("c1", 1, slots=1), 0.0)
    run(home, "known", 0.0, 0.1, tenant="t0")
    home.enqueue(call("stream", "long"), 1.0)
    turn(home, 1.0)
    for n in range(5):
        home.enqueue(call(f"long{n}", "long"), 1.0)
        home.enqueue(call(f"short{n}", "short"), 1.0)
    home.on_credit(credit("c1", 2, "stream", slots=1), 5.0)
    home.on_credit(credit("c2", 3, slots=5), 5.0)
    assert turn(home, 5.0)[1] == [f"short{n}" for n in range(5)]


def test_a_tier_with_a_reserve_starts_at_once(home: Home) -> None:
    """The other tiers use all remaining slots meanwhile."""
    home.on_credit(credit("c1", 1, slots=4), 0.0)
    run(home, "gold", 0.0, tenant="gold", tier_rank=2, reserved=0.25)
    for n in range(8):
        home.enqueue(call(f"f{n}", "free"), 1.0)
    assert len(turn(home, 1.0)[1]) == 3
    home.enqueue(call("g", "gold", tier_rank=2, reserved=0.25), 1.1)
    assert turn(home, 1.1)[1] == ["g"]


def test_a_flow_that_others_slow_down_is_reported(home: Home) -> None:
    """The report names the tenant that holds the slots."""
    home.on_credit(credit("c1", 1, slots=1), 0.0)
    at = 0.0
    for n in range(30):
        home.enqueue(call(f"e{n}", "elephant"), at)
        home.enqueue(call(f"m{n}", "mouse"), at)
        for _ in range(2):
            heartbeat(home, at, "c1")
            (granted,) = turn(home, at)[1]
            at += 1.0 if granted[0] == "e" else 0.1
            home.done(granted, "c1", 1, at, cost=1.0, outcome=Outcome.OK)
    (slow,) = home.statistics(at).slow
    assert (slow.tenant, slow.neighbour) == ("mouse", "elephant")


steps = st.lists(
    st.tuples(st.sampled_from("eeeggdck"), st.integers(0, 30), st.sampled_from(sorted(RANKS))), min_size=1, max_size=120
)


@examples(80)
@given(steps=steps)
def test_nothing_runs_past_its_time_and_nothing_is_lost(steps: list[tuple[str, int, str]]) -> None:
    """In any history of calls, losses and returns, each call is granted in time, dropped once, or still waits."""
    home = Home(gateway="gw1", epoch=1)
    at, seq = 0.0, 0
    due: dict[str, float] = {}
    waiting: set[str] = set()
    running: list[tuple[str, str, int]] = []
    for number, (step, amount, tier) in enumerate(steps):
        at += 0.05
        seq += 1
        name = f"{tier}{number}"
        if step == "e":
            described: CallDescriptor = call(
                name, tier, tier_rank=RANKS[tier], weight=4.0 ** RANKS[tier], remaining_ms=100.0 + 100.0 * amount,
                reserved=0.2 if tier == "enterprise" else 0.0, queue_ms=1_000.0 if tier == "free" else 0.0,
            )  # fmt: skip
            try:
                home.enqueue(described, at)
            except PilotlightError:
                continue
            waiting.add(name)
            due[name] = at + min(0.1 + 0.1 * amount, 1.0 if tier == "free" else 99.0)
        elif step == "d" and running:
            ended, container, grant = running.pop(amount % len(running))
            home.done(ended, container, grant, at, cost=float(amount), outcome=list(Outcome)[amount % len(Outcome)])
        elif step == "c":
            held = [c for c, container, _ in running if container == f"c{amount % 3}"]
            home.on_credit(credit(f"c{amount % 3}", seq, *held, slots=2), at)
        elif step == "k":
            home.on_credit(credit(f"c{amount % 3}", seq, state=ContainerState.GONE), at)
        for dropped in home.expire(at):
            waiting.remove(dropped.call_id)
        for made in home.grants(at):
            waiting.remove(made.call_id)
            running.append((made.call_id, made.container, made.grant_number))
            assert at < due[made.call_id]
        for dropped in home.expire(at):  # whose turn came too late
            waiting.remove(dropped.call_id)
        assert home.next_wake() != 0.0
        home.demand(at)
        home.check_integrity()
        assert home.statistics(at).queued == len(waiting)
        assert all(at < due[name] for name in waiting)
