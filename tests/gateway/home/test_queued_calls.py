"""How calls leave the queue without a grant, and what their callers hear."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.messages.call_messages import MISCONFIGURED, RemoteError
from pilotlight_core.model.messages.node_messages import ContainerState, Shortage
from pilotlight_gateway.home.home import (
    Home,
)
from pilotlight_gateway.home.version_queue import NEVER_FITS_S, SHUT_DOWN_S
from tests.builders.calls import call, credit
from tests.gateway.home.granted_calls import granted


@pytest.fixture
def home() -> Home:
    return Home(gateway="gw1", epoch=7)


def test_a_cancelled_call_is_never_granted(home: Home) -> None:
    """`cancel` returns whether it was in time."""
    home.enqueue(call("a"), 0.0)
    assert home.cancel("a")
    assert not home.cancel("a")
    home.on_credit(credit(), 0.0)
    assert granted(home) == []


def test_the_calls_of_a_lost_gateway_leave_the_queue(home: Home) -> None:
    """Their callers are gone with it."""
    home.enqueue(call("a", gateway="gw1"), 0.0)
    home.enqueue(call("b", gateway="gw2"), 0.0)
    assert home.gateway_gone("gw2") == ["b"]
    assert home.statistics(0.0).queued == 1


def test_a_call_leaves_the_queue_at_its_deadline_with_the_reason(home: Home) -> None:
    """The error contains the shortage that the controller has reported."""
    home.enqueue(call("a", remaining_ms=1_000.0), 0.0)
    home.on_shortage(Shortage(version="ver_1", epoch=1, reason="it asks for H100"), 0.5)
    assert home.expire(0.9) == []
    (dropped,) = home.expire(1.0)
    assert (dropped.call_id, dropped.gateway, dropped.code) == ("a", "gw1", "deadline_exceeded")
    assert dropped.detail == "It waited 1.0 s for a container: it asks for H100."
    home.check_integrity()


def test_a_call_that_fits_nowhere_is_refused_after_a_while(home: Home) -> None:
    """The shortage must last for ten seconds without a pause, as a node may restart."""
    never = Shortage(version="ver_1", epoch=1, reason="the fleet has no GPU", never=True)
    home.on_shortage(never, 0.0)
    home.enqueue(call("a"), 0.0)
    for second in range(int(NEVER_FITS_S) - 2):
        home.on_shortage(never, float(second))
    home.on_shortage(msgspec.structs.replace(never, never=False), NEVER_FITS_S - 1.0)
    for second in range(int(NEVER_FITS_S)):
        home.on_shortage(never, NEVER_FITS_S + second)
        assert home.expire(NEVER_FITS_S + second) == []
    home.on_shortage(never, 2 * NEVER_FITS_S)
    (dropped,) = home.expire(2 * NEVER_FITS_S)
    assert (dropped.code, dropped.detail) == ("no_capacity", "the fleet has no GPU")


def test_calls_of_a_version_that_is_shut_down_are_refused_soon(home: Home) -> None:
    """A second is enough for a controller that has not read yet that it was deployed again."""
    down = Shortage(version="ver_1", epoch=1, reason="its app is stopped", never=True, shut_down=True)
    home.enqueue(call("a"), 0.0)
    home.on_shortage(down, 0.0)
    home.on_shortage(down, SHUT_DOWN_S - 0.1)
    assert home.expire(SHUT_DOWN_S - 0.1) == []

    home.on_shortage(down, SHUT_DOWN_S)

    (dropped,) = home.expire(SHUT_DOWN_S)
    assert (dropped.code, dropped.detail) == ("no_capacity", "its app is stopped")


def test_what_the_operator_has_to_mend_is_not_told_as_the_functions_fault(home: Home) -> None:
    """503 instead of 500, for later, without what the node says: the caller may be of another tenant."""
    error = RemoteError(MISCONFIGURED, "could not be started: secret.py is not in the blob store")
    home.enqueue(call("a"), 0.0)
    home.on_credit(credit(seq=1, state=ContainerState.LOADING), 0.1)
    home.on_credit(credit(seq=2, state=ContainerState.GONE, error=error, reason=error.message), 0.2)

    (dropped,) = home.expire(0.2)
    assert (dropped.code, dropped.error, dropped.retry_after) == ("misconfigured", None, 30.0)
    assert "its operator finds the reason" in dropped.detail
    assert "secret" not in dropped.detail
    home.check_integrity()


def test_a_function_that_cannot_be_loaded_fails_its_queued_calls(home: Home) -> None:
    """They fail at once with the traceback, as the next container would fail alike."""
    error = RemoteError("ImportError", "no module named numpi", "Traceback …")
    home.enqueue(call("a"), 0.0)
    home.on_credit(credit(seq=1, state=ContainerState.LOADING), 0.1)
    home.on_credit(credit(seq=2, state=ContainerState.GONE, error=error, reason="cannot load"), 0.2)
    (dropped,) = home.expire(0.2)
    assert (dropped.code, dropped.error) == ("load_failed", error)
    home.check_integrity()


def test_calls_wait_for_a_second_start_but_not_for_a_third(home: Home) -> None:
    """One failure may be due to the node, but a function that fails twice in a row is not started again."""
    error = RemoteError("ImportError", "no module named numpi")
    home.enqueue(call("a"), 0.0)
    home.on_credit(credit("c2", 1, state=ContainerState.LOADING), 0.1)
    home.on_credit(credit("c1", 2, state=ContainerState.GONE, error=error), 0.2)
    assert home.expire(0.2) == []
    home.on_credit(credit("c3", 3, state=ContainerState.LOADING), 0.3)
    home.on_credit(credit("c2", 4, state=ContainerState.GONE, error=error), 0.4)
    assert [dropped.call_id for dropped in home.expire(0.4)] == ["a"]


def test_a_failed_start_beside_a_ready_container_fails_no_call(home: Home) -> None:
    """One bad node is not a bad function."""
    home.on_credit(credit("c1", 1, "x"), 0.0)
    home.enqueue(call("a"), 0.0)
    error = RemoteError("OSError", "disk")
    home.on_credit(credit("c2", 2, state=ContainerState.GONE, error=error), 0.2)
    assert home.expire(0.2) == []
