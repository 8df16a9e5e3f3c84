"""What the API shows of a live call."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import Cancelled, PilotlightError, Unavailable
from pilotlight_gateway.calls.origin import OriginState
from tests.gateway.calls.quiet_call import quiet_call


@pytest.mark.parametrize(
    ("state", "said"), [(OriginState.WAITING, "queued"), (OriginState.SENT, "running"), (OriginState.DONE, "succeeded")]
)
def test_its_state_is_that_of_its_origin(state: OriginState, said: str) -> None:
    """In fewer words, and with its age."""
    call = quiet_call("a", at=100.0)
    call.origin.state = state

    status = call.status(101.5)

    assert (status.id, status.state, status.age_ms, status.error) == ("a", said, 1500.0, None)


@pytest.mark.parametrize(("error", "said"), [(Cancelled("x"), "cancelled"), (Unavailable("x"), "failed")])
def test_an_error_is_told_whatever_the_origin_says(error: PilotlightError, said: str) -> None:
    """A caller who has cancelled a call asked for its end."""
    call = quiet_call("a", at=100.0)
    call.fail(error)

    status = call.status(101.0)

    assert status.state == said
    assert status.error is not None
    assert status.error["code"] == error.wire_code
