"""A refusal of another gateway says what one of our own would."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.errors import TooMuch
from pilotlight_core.model.limits import ReachedLimit
from pilotlight_core.model.messages.scheduling import Dropped
from pilotlight_gateway.calls.outcomes.call_failures import dropped_error
from pilotlight_gateway.home.homes import dropped_of
from tests.builders.calls import call


def test_the_limit_that_is_reached_travels_along() -> None:
    """Over the bus and back."""
    reached = ReachedLimit(limit="queue_calls", tenant="acme", allowed=4, current=4)
    dropped = dropped_of(call("c1"), TooMuch("no", code="queue_full", retry_after=2.0, limits=[reached]))

    error = dropped_error(msgspec.msgpack.decode(msgspec.msgpack.encode(dropped), type=Dropped))

    assert (error.wire_code, error.detail, error.retry_after) == ("queue_full", "no", 2.0)
    assert error.more == {"limits": [reached]}
    assert "limits" not in dropped_error(dropped_of(call("c1"), TooMuch("no"))).more
