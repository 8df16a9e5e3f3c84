"""Whoever follows events hears once that a level is broken, and once that it is kept again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pilotlight_core.bus import BusDown
from pilotlight_core.host.events.event_log import MemoryEventLog
from pilotlight_core.model.messages.seeing.tallies import FunctionTally
from pilotlight_gateway.events.level_burns import PAIRS
from pilotlight_gateway.events.level_watch import ASKED, EVERY_S, QUIET_S, LevelSources, LevelWatch, span_text
from pilotlight_gateway.tally.tally_window import FoundWindows, FunctionWindow

FN = "acme:shop.sell"
GOOD, BAD = FunctionTally(good={"unary": 100}), FunctionTally(good={"unary": 10}, bad={"unary": 90})


class Watched:
    """Functions with a level of 300 ms, and what is seen of them."""

    def __init__(self, *names: str, told: Mapping[tuple[str, str], bool] | None = None) -> None:
        self.names = list(names or (FN,))
        self.tally = GOOD
        self.asked: list[tuple[int, int]] = []
        """How many functions, over how many minutes."""
        self.told = dict(told or {})
        self.read: list[str] = []
        self.at = 1_000.0
        self.events, self.notices = MemoryEventLog(), list[tuple[str, str, str]]()
        sources = LevelSources(
            counted=self, named=lambda: {name: {"unary": 300.0} for name in self.names}, last_told=self.last_told
        )
        self.watch = LevelWatch(sources, self.events, self.notify, wall=lambda: self.at)

    async def brief(self, functions: tuple[str, ...], minutes: int) -> FoundWindows:
        self.asked.append((len(functions), minutes))
        windows = tuple(FunctionWindow(function=one, since_ns=0, until_ns=1, tally=self.tally) for one in functions)
        return FoundWindows(since_ns=0, until_ns=1, windows=windows, gateways=(), silent=())

    async def last_told(self, tenant: str) -> Mapping[tuple[str, str], bool]:
        self.read.append(tenant)
        return self.told

    async def notify(self, tenant: str, event: str, about: str, data: dict[str, Any], at: float) -> None:
        self.notices.append((tenant, event, about))
        assert (data["function"], at) == (FN.partition(":")[2], self.at)

    async def look(self, tally: FunctionTally, seconds: float = EVERY_S) -> list[str]:
        """The kinds of all events up to now."""
        self.tally, self.at = tally, self.at + seconds
        await self.watch.refresh()
        return [event.kind for event in self.events.events]


async def test_a_level_is_told_once_when_it_breaks_and_once_when_it_is_kept_again() -> None:
    """To the function's tenant alone, and to webhooks that want it; kept is what has not burnt for five minutes."""
    world = Watched()
    assert await world.look(GOOD) == []
    assert await world.look(BAD) == ["slo.broken"]
    assert await world.look(BAD) == ["slo.broken"]
    assert await world.look(GOOD) == ["slo.broken"]
    assert await world.look(BAD) == ["slo.broken"]
    await world.look(GOOD)
    assert await world.look(GOOD, QUIET_S - 1) == ["slo.broken"]
    assert await world.look(GOOD, 1) == ["slo.broken", "slo.kept"]
    broken, kept = world.events.events
    assert (broken.tenant, broken.function) == ("acme", FN)
    assert broken.says == (
        "shop.sell breaks its level p95_ms=300: 90% of 100 calls of the last 5 min were later, "
        "and too many in the last 1 h."
    )
    assert kept.says == "shop.sell keeps its level p95_ms=300 again: 0% of 100 calls of the last 5 min were later."
    assert broken.facts == {
        "level": "unary", "slo": "p95_ms", "target_ms": 300.0, "bad": 0.9, "calls": 100, "window_min": 60,
        "short_min": 5,
    }  # fmt: skip
    assert [notice[:2] for notice in world.notices] == [("acme", "slo.broken"), ("acme", "slo.kept")]
    assert len({about for _, _, about in world.notices}) == 2


async def test_what_another_gateway_has_told_is_not_told_again() -> None:
    """A home that moves, or begins anew, reads what was told last: of each tenant once."""
    world = Watched(told={(FN, "unary"): True, ("acme:shop.other", "unary"): False})
    assert await world.look(BAD) == []
    await world.look(GOOD)
    assert await world.look(GOOD, QUIET_S) == ["slo.kept"]
    assert world.read == ["acme"]
    world.names = []
    await world.look(BAD)
    world.names = [FN]
    await world.look(BAD)
    assert world.read == ["acme", "acme"]  # it was elsewhere meanwhile


async def test_longer_windows_are_asked_for_where_the_short_ones_burn() -> None:
    """Many functions in few questions."""
    names = [f"acme:shop.f{number}" for number in range(ASKED + 6)]
    world = Watched(*names)
    await world.look(GOOD)
    assert world.asked == [(count, pair.short) for count in (ASKED, 6) for pair in PAIRS]
    world.asked.clear()
    world.names = [FN]
    await world.look(BAD)
    assert world.asked == [(1, 5), (1, 30), (1, 120), (1, 360), (1, 60), (1, 360), (1, 1_440), (1, 4_320)]


async def test_nothing_is_told_while_it_is_not_known_what_was() -> None:
    """The bus is away: the next look asks again."""
    world = Watched()

    async def away(_: str) -> Mapping[tuple[str, str], bool]:
        raise BusDown("away")

    sources = LevelSources(counted=world, named=lambda: {FN: {"unary": 300.0}}, last_told=away)
    world.watch = LevelWatch(sources, world.events, world.notify, wall=lambda: world.at)
    with pytest.raises(BusDown):
        await world.look(BAD)
    assert world.events.events == []


def test_spans_in_words() -> None:
    assert (span_text(5), span_text(60), span_text(1_440)) == ("5 min", "1 h", "24 h")
    assert span_text(4_320) == "72 h"
