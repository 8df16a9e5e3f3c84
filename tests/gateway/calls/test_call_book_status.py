"""How a live call shows itself."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import Cancelled, ContainerDied, PilotlightError
from pilotlight_gateway.calls.call_book import status_of
from pilotlight_gateway.calls.origin import OriginState
from tests.builders.calls import grant
from tests.gateway.calls.quiet_call import quiet_call


def test_a_call_shows_where_it_is() -> None:
    """Queued until it is granted, then running, with its container."""
    live = quiet_call(at=10.0, client_id="cid_12345678")
    live.origin.begin(10.0)
    status = status_of(live, 12.5)
    assert (status.state, status.age_ms, status.container, status.client_id) == (
        "queued",
        2_500.0,
        None,
        "cid_12345678",
    )
    live.origin.granted(grant(), 12.5)
    assert (status_of(live, 13.0).state, status_of(live, 13.0).container) == ("running", "c1")


@pytest.mark.parametrize(
    ("state", "said"), [(OriginState.WAITING, "queued"), (OriginState.SENT, "running"), (OriginState.DONE, "succeeded")]
)
def test_its_state_is_that_of_its_origin(state: OriginState, said: str) -> None:
    """In fewer words, and with its age."""
    call = quiet_call("a", at=100.0)
    call.origin.state = state

    status = status_of(call, 101.5)

    assert (status.id, status.state, status.age_ms, status.error) == ("a", said, 1500.0, None)


@pytest.mark.parametrize(("error", "state"), [(Cancelled("x"), "cancelled"), (ContainerDied("x"), "failed")])
def test_a_call_that_failed_says_with_what(error: PilotlightError, state: str) -> None:
    """Being cancelled is a state of its own."""
    live = quiet_call()
    live.fail(error)
    status = status_of(live, 101.0)
    assert (status.state, status.error) == (state, {"code": error.wire_code, "detail": error.detail})
