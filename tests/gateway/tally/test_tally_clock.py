"""Each beat adds up, and each second the homes are looked at."""

from __future__ import annotations

import asyncio
from typing import Any

from pilotlight_gateway.home.home_report import HomeVersionLoad
from pilotlight_gateway.tally.gateway_tallies import GatewayTallies
from pilotlight_gateway.tally.home_tallies import HomeTallies
from pilotlight_gateway.tally.tallies import Tallies
from pilotlight_gateway.tally.tally_answers import TallySources
from pilotlight_gateway.tally.tally_clock import TallyClock
from tests.gateway.tally.tallied_calls import WallClock, end, version
from tests.gateway.tally.tally_gateways import load
from tests.waiting import until


def test_a_beat_folds_and_notes_how_late_it_was() -> None:
    wall, at, looks = WallClock(), [5.0], 0
    sources = TallySources(
        calls=Tallies(wall), homes=HomeTallies(), own=GatewayTallies("one", wall=wall, worked=lambda: 0.0), wall=wall
    )

    def loads() -> list[HomeVersionLoad]:
        nonlocal looks
        looks += 1
        return [load(queued=1)]

    clock = TallyClock(sources, loads, clock=lambda: at[0])
    end(sources.calls, version())
    for _ in range(25):
        at[0] += 0.1
        wall.pass_s(0.1)
        clock.tick(0.02)
    assert (sources.calls.calls, looks) == (1, 2)
    assert round(sources.own.window(0).late_ms) == 20


async def test_it_beats_until_its_block_ends_whatever_goes_wrong() -> None:
    """Calls go on, so counting does."""
    beats = 0

    class Broken:
        """Tallies with a bug."""

        def fold(self) -> None:
            nonlocal beats
            beats += 1
            raise RuntimeError("a bug")

    broken: Any = Broken()
    sources = TallySources(calls=broken, homes=HomeTallies(), own=GatewayTallies("one"))
    async with TallyClock(sources, list).running():
        await until(lambda: beats >= 2)
    seen = beats
    await asyncio.sleep(0)
    assert beats == seen
