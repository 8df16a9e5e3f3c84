"""How busy a gateway's thread was, and how late its timers."""

from __future__ import annotations

import pytest

from pilotlight_gateway.tally.gateway_tallies import GatewayTallies
from tests.gateway.tally.tallied_calls import WallClock


def test_a_gateway_tells_how_it_was() -> None:
    """Over minutes, of what is told the mean, the most or the sum."""
    clock, worked, traffic = WallClock(), [0.0], [0, 0]
    own = GatewayTallies("one", lambda: (traffic[0], traffic[1]), wall=clock, worked=lambda: worked[0])
    began = clock()
    for minute in range(3):
        for beat in range(60):
            clock.pass_s(1)
            worked[0] += 0.5
            traffic[0] += 10
            traffic[1] += 20
            own.note_timer(0.003 if (minute, beat) == (1, 7) else 0.001, calls=minute * 60 + beat + 1)
    seen = own.window(began)
    assert seen.gateway == "one"
    assert seen.process not in ("", "one", GatewayTallies("one").window(0).process)
    assert seen.loop_share == pytest.approx(0.5)
    assert seen.late_ms == pytest.approx(3.0)
    assert seen.late_mean_ms == pytest.approx(1.0, rel=0.1)
    assert (seen.link_in, seen.link_out) == (1_800, 3_600)
    assert seen.calls == pytest.approx(180, abs=3)
