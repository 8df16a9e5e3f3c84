"""A window begins where parts begin, and an answer has a window for whoever had no calls."""

from __future__ import annotations

from pilotlight_core.model.messages.scheduling import AskTallies, TalliesTold
from pilotlight_core.model.messages.seeing.tallies import GatewayTally
from pilotlight_gateway.tally.tally_ring import MINUTE_NS, TEN_NS
from pilotlight_gateway.tally.tally_window import added_up, since_of

AT = 3_000_000 * TEN_NS + 7 * MINUTE_NS + 30_000_000_000


def test_windows_begin_with_a_minute_and_long_ones_with_a_ten() -> None:
    """The minute that goes on comes on top."""
    assert since_of(10, AT) == AT - 30_000_000_000 - 10 * MINUTE_NS
    assert since_of(59, AT) % MINUTE_NS == 0
    assert since_of(60, AT) % TEN_NS == 0
    assert AT - 60 * MINUTE_NS - TEN_NS < since_of(60, AT) <= AT - 60 * MINUTE_NS


async def test_a_function_without_calls_has_a_window_too() -> None:
    """With what is known of gateways."""
    told = [TalliesTold(own=GatewayTally(gateway="one", since_ns=1, until_ns=2))]
    found = await added_up(told, AskTallies(since_ns=5 * MINUTE_NS), 7 * MINUTE_NS, ["two"])
    window = found.of("acme:app.fn")
    assert (window.seconds, window.tally.ended, window.silent) == (120.0, 0, ("two",))
    assert [each.gateway for each in window.gateways] == ["one"]
