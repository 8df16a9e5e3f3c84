"""How often functions are called."""

from __future__ import annotations

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.messages.seeing.tallies import FunctionTally
from pilotlight_gateway.rollouts.call_rates import CallRates
from pilotlight_gateway.tally.tally_window import FunctionWindow


class Counted:
    def __init__(self) -> None:
        self.asked = 0
        self.is_down = False

    async def window(self, function: str, minutes: int = 10) -> FunctionWindow:
        self.asked += 1
        if self.is_down:
            raise Unavailable("Too much is asked.", retry_after=1.0)
        until = minutes * 60 * 10**9
        return FunctionWindow(function=function, since_ns=0, until_ns=until, tally=FunctionTally(arrivals=100))


async def test_calls_an_hour_are_asked_once_a_minute() -> None:
    """Of all functions together; while nobody can say, what was known stays."""
    counted, at = Counted(), [0.0]
    rates = CallRates(counted, lambda: at[0])
    assert await rates.per_hour(["acme:shop.a", "acme:shop.b"]) == 1_200.0
    assert await rates.per_hour(["acme:shop.a"]) == 600.0
    assert counted.asked == 2
    counted.is_down = True
    at[0] = 61.0
    assert await rates.per_hour(["acme:shop.a"]) == 600.0
    assert await rates.per_hour(["acme:shop.c"]) == 0.0
