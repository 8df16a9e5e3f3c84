"""Tells when a function breaks a level of its `slo=`, and when it keeps it again: once each time that changes.

The home of a function looks, each minute at its calls of the last minutes, and at longer windows where these burn. What
was told last is read from the events when a function comes here, so another home, or a gateway that begins anew, tells
nothing twice. Bounded: `FOLLOWED` functions, `ASKED` of them in one question.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pilotlight_core.host.events.event_log import EventLog
from pilotlight_core.model.messages.logs import EventKind, PlatformEvent
from pilotlight_core.model.messages.seeing.tallies import FunctionTally
from pilotlight_gateway.events.level_burns import FIELDS, PAIRS, BurnPair, bad_part, broken_by, burns_short
from pilotlight_gateway.events.refreshing import refreshing
from pilotlight_gateway.tally.tally_window import FoundWindows

EVERY_S = 60.0
FOLLOWED = 512
ASKED = 64
QUIET_S = 300.0
"""A level is kept again once nothing has burnt for so long: the shortest window."""
NO_CALLS = FunctionTally()

FunctionLevel = tuple[str, str]
"""`tenant:app.function`, and its level."""
Notify = Callable[[str, str, str, dict[str, Any], float], Awaitable[None]]
"""Tells webhooks: tenant, event, what it is about, data, instant."""


class BriefWindows(Protocol):
    """What was counted of calls."""

    async def brief(self, functions: tuple[str, ...], minutes: int) -> FoundWindows: ...


@dataclass(frozen=True, kw_only=True)
class LevelSources:
    """What the watch reads."""

    counted: BriefWindows
    named: Callable[[], Mapping[str, Mapping[str, float]]]
    """The functions whose home is here with their levels in milliseconds."""
    last_told: Callable[[str], Awaitable[Mapping[FunctionLevel, bool]]]
    """Of a tenant: the levels of which something was told, and whether they were broken then. Raises BusError."""


@dataclass
class LevelState:
    """Of one function."""

    broken: dict[str, bool] = field(default_factory=dict)
    """By level, as was told."""
    quiet_since: dict[str, float] = field(default_factory=dict)
    """Since when nothing burns of a level that is broken."""


class LevelWatch:
    """Of one gateway; `running` looks. `wall`: unix seconds."""

    def __init__(
        self, sources: LevelSources, events: EventLog, notify: Notify, *, wall: Callable[[], float] = time.time
    ) -> None:
        self._sources = sources
        self._events = events
        self._notify = notify
        self._wall = wall
        self._states: dict[str, LevelState] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look until the block ends."""
        async with refreshing(self.refresh, EVERY_S, "levels of functions"):
            yield

    async def refresh(self) -> None:
        """Tell what has changed. Raises BusError, Unavailable: what was not looked at is, the next time."""
        named = dict(list(self._sources.named().items())[:FOLLOWED])
        self._states = {name: state for name, state in self._states.items() if name in named}
        await self._remember([name for name in named if name not in self._states])
        names = list(named)
        for first in range(0, len(names), ASKED):
            some = {name: named[name] for name in names[first : first + ASKED]}
            await self._refresh_some(some)

    async def _remember(self, new: list[str]) -> None:
        """Read what was told last of functions that have come here."""
        by_tenant: dict[str, list[str]] = {}
        for name in new:
            by_tenant.setdefault(name.partition(":")[0], []).append(name)
        for tenant, names in by_tenant.items():
            told = await self._sources.last_told(tenant)
            for name in names:
                of_name = {level: is_broken for (function, level), is_broken in told.items() if function == name}
                self._states[name] = LevelState(of_name)

    async def _refresh_some(self, named: Mapping[str, Mapping[str, float]]) -> None:
        short = {pair.short: await self._tallies(tuple(named), pair.short) for pair in PAIRS}
        long: dict[int, dict[str, FunctionTally]] = {}
        for pair in PAIRS:
            seen = short[pair.short]
            hot = [name for name, levels in named.items() if any(burns_short(seen[name], one, pair) for one in levels)]
            long[pair.long] = await self._tallies(tuple(hot), pair.long) if hot else {}
        for name, levels in named.items():
            of_short = {minutes: tallies[name] for minutes, tallies in short.items()}
            of_long = {minutes: tallies[name] for minutes, tallies in long.items() if name in tallies}
            for level, ms in levels.items():
                broken = broken_by(level, of_short, of_long)
                if (is_broken := self._change(name, level, broken)) is not None:
                    by = broken or PAIRS[0]
                    await self._notify_of(LevelChange(name, level, ms, by, of_short[by.short], is_broken))

    async def _tallies(self, functions: tuple[str, ...], minutes: int) -> dict[str, FunctionTally]:
        found = await self._sources.counted.brief(functions, minutes)
        seen = {window.function: window.tally for window in found.windows}
        return {name: seen.get(name, NO_CALLS) for name in functions}

    def _change(self, name: str, level: str, pair: BurnPair | None) -> bool | None:
        """Whether a level is broken from now on (True) or kept again (False); None: it is as it was."""
        state, at = self._states[name], self._wall()
        was = state.broken.get(level, False)
        if pair is not None:
            state.quiet_since.pop(level, None)
            state.broken[level] = True
            return None if was else True
        if not was:
            return None
        if at - state.quiet_since.setdefault(level, at) < QUIET_S:
            return None
        del state.quiet_since[level]
        state.broken[level] = False
        return False

    async def _notify_of(self, change: LevelChange) -> None:
        event = level_event(change, self._wall())
        self._events.note(event)
        about = f"{change.function}:{change.level}:{int(event.at)}"
        data = event.facts | {"function": change.function.partition(":")[2], "says": event.says}
        await self._notify(event.tenant, event.kind, about, data, event.at)


@dataclass(frozen=True)
class LevelChange:
    """A level that is broken from now on, or kept again."""

    function: str
    level: str
    ms: float
    pair: BurnPair
    """Of windows, over which it is broken, or was looked at."""
    seen: FunctionTally
    """In the short one of them."""
    is_broken: bool


def level_event(change: LevelChange, at: float) -> PlatformEvent:
    """It in a sentence."""
    tenant, _, name = change.function.partition(":")
    pair, part, field_name = change.pair, bad_part(change.seen, change.level), FIELDS[change.level]
    calls = change.seen.good.get(change.level, 0) + change.seen.bad.get(change.level, 0)
    target = f"{field_name}={change.ms:g}"
    late = f"{part:.0%} of {calls} calls of the last {span_text(pair.short)} were later"
    if change.is_broken:
        says = f"{name} breaks its level {target}: {late}, and too many in the last {span_text(pair.long)}."
    else:
        says = f"{name} keeps its level {target} again: {late}."
    facts = {
        "level": change.level, "slo": field_name, "target_ms": change.ms, "bad": round(part, 4), "calls": calls,
        "window_min": pair.long, "short_min": pair.short,
    }  # fmt: skip
    kind = EventKind.SLO_BROKEN if change.is_broken else EventKind.SLO_KEPT
    return PlatformEvent(at=at, kind=kind, tenant=tenant, function=change.function, says=says, facts=facts)


def span_text(minutes: int) -> str:
    """Minutes as people say them."""
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h"
