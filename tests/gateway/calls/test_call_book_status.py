"""How a live call shows itself."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import Cancelled, ContainerDied, PilotlightError
from tests.builders.calls import grant
from tests.gateway.calls.quiet_call import quiet_call


def test_a_call_shows_where_it_is() -> None:
    """Queued until it is granted, then running, with its container."""
    live = quiet_call(at=10.0, client_id="cid_12345678")
    live.origin.begin(10.0)
    status = live.status(12.5)
    assert (status.state, status.age_ms, status.container, status.client_id) == (
        "queued",
        2_500.0,
        None,
        "cid_12345678",
    )
    live.origin.granted(grant(), 12.5)
    assert (live.status(13.0).state, live.status(13.0).container) == ("running", "c1")


@pytest.mark.parametrize(("error", "state"), [(Cancelled("x"), "cancelled"), (ContainerDied("x"), "failed")])
def test_a_call_that_failed_says_with_what(error: PilotlightError, state: str) -> None:
    """Being cancelled is a state of its own."""
    live = quiet_call()
    live.fail(error)
    status = live.status(101.0)
    assert (status.state, status.error) == (state, {"code": error.wire_code, "detail": error.detail})
