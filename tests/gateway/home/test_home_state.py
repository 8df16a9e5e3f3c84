"""What a home has learnt moves with its shard."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import PilotlightError, Unavailable
from pilotlight_core.model.messages.call_messages import Outcome, RemoteError
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.messages.scheduling import HomeState
from pilotlight_gateway.home.breakers import CONTAINER_FAILURES, FIRST_PAUSE_S, VERSION_FAILURES
from pilotlight_gateway.home.home import Home
from pilotlight_gateway.home.home_state import VERSIONS_AT_MOST
from tests.builders.calls import call, credit


def handed_over(home: Home, at: float, *, now: float) -> Home:
    """The next home, on another clock."""
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(home.hand_over(at)), type=HomeState)
    heir = Home(gateway="gw2", epoch=8)
    heir.restore(state, now)
    heir.check_integrity()
    return heir


def run(home: Home, name: str, at: float, outcome: Outcome = Outcome.OK, **more: Any) -> None:
    """A call that holds its slot for a second."""
    home.enqueue(call(name, **more), at)
    (grant,) = home.grants(at)
    home.done(name, grant.container, grant.grant_number, at + 1.0, cost=1000.0, outcome=outcome)


def test_the_next_home_inherits_the_service_time() -> None:
    """It refuses calls that would be too late, as the former home would have."""
    home = Home(gateway="gw1", epoch=7)
    home.on_credit(credit("c1", 1, slots=1), 0.0)
    for n in range(3):
        run(home, f"a{n}", float(n))

    heir = handed_over(home, 10.0, now=500.0)
    heir.on_credit(credit("c1", 2, slots=1), 500.0)
    heir.enqueue(call("first"), 500.0)
    heir.grants(500.0)
    heir.enqueue(call("second"), 500.0)

    with pytest.raises(PilotlightError, match="turn would come") as refused:
        heir.enqueue(call("late", remaining_ms=1500.0), 500.0)
    assert refused.value.retry_after == pytest.approx(2.0)


def test_an_open_breaker_stays_open_for_the_rest_of_its_pause() -> None:
    """Its reason and trips move too; the breaker of a container applies from its first credit on."""
    home = Home(gateway="gw1", epoch=7)
    home.enqueue(call("a0"), 0.0)
    error = RemoteError("ImportError", "no module named numpi")
    for n in range(VERSION_FAILURES):
        home.on_credit(credit(f"c{n}", n + 1, state=ContainerState.GONE, error=error), 0.0)

    heir = handed_over(home, FIRST_PAUSE_S / 4, now=500.0)

    with pytest.raises(Unavailable, match="numpi") as refused:
        heir.enqueue(call("b"), 500.0)
    assert refused.value.wire_code == "breaker_open"
    assert refused.value.retry_after == pytest.approx(FIRST_PAUSE_S * 3 / 4)
    heir.enqueue(call("probe"), 500.0 + FIRST_PAUSE_S)


def test_a_row_of_lost_containers_goes_on() -> None:
    """After four losses of one tenant's calls at the former home, the fifth opens the breaker of that tenant only."""
    home = Home(gateway="gw1", epoch=7)
    for n in range(VERSION_FAILURES - 1):
        home.on_credit(credit(f"c{n}", n + 1), 0.0)
        run(home, f"a{n}", 0.0, Outcome.DIED, tenant="bad")
        home.on_credit(credit(f"c{n}", n + 100, state=ContainerState.GONE), 0.0)

    heir = handed_over(home, 1.0, now=500.0)
    heir.on_credit(credit("last", 1), 500.0)
    run(heir, "b", 500.0, Outcome.DIED, tenant="bad")

    with pytest.raises(Unavailable):
        heir.enqueue(call("c", "bad"), 501.0)
    heir.enqueue(call("d", "good"), 501.0)


def test_a_broken_container_is_passed_over_by_the_next_home_too() -> None:
    """It is passed over until its pause is over, and forgotten if no credit comes."""
    home = Home(gateway="gw1", epoch=7)
    for name in ("bad", "good"):
        home.on_credit(credit(name, 1, slots=1), 0.0)
    for n in range(CONTAINER_FAILURES):
        home.enqueue(call(f"x{n}"), 0.0)
        home.enqueue(call(f"y{n}"), 0.0)
        for grant in home.grants(0.0):
            outcome = Outcome.RAISED if grant.container == "bad" else Outcome.OK
            home.done(grant.call_id, grant.container, grant.grant_number, 0.01, cost=1.0, outcome=outcome)

    heir = handed_over(home, 0.1, now=500.0)
    for name in ("bad", "good"):
        heir.on_credit(credit(name, 2, slots=1), 500.0)
    heir.enqueue(call("a"), 500.0)
    heir.enqueue(call("b"), 500.0)

    assert [grant.container for grant in heir.grants(500.0)] == ["good"]
    assert [(told.container, told.state) for told in heir.breakers(500.0)] == [("bad", "open")]
    heir.check_integrity()


def test_no_more_versions_travel_than_fit() -> None:
    """The versions that were used last are handed over."""
    home = Home(gateway="gw1", epoch=7)
    for n in range(VERSIONS_AT_MOST + 5):
        home.on_credit(credit(f"c{n}", 1, version=f"ver_{n}"), float(n))
        run(home, f"a{n}", float(n), version=f"ver_{n}")
        home.demand(n + 1.0)

    versions = home.hand_over(1e4).versions

    assert len(versions) == VERSIONS_AT_MOST
    assert "ver_0" not in versions
    assert f"ver_{VERSIONS_AT_MOST + 4}" in versions
