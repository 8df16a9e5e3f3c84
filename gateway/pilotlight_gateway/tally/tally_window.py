"""What all gateways together saw of functions in a window, added up of what each tells."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from pilotlight_core.model.messages.scheduling import AskTallies, TalliesTold
from pilotlight_core.model.messages.seeing.tallies import JOBS, FunctionTally, GatewayTally, HomeTally, ToldTally
from pilotlight_gateway.tally.home_tallies import HomeCounts
from pilotlight_gateway.tally.tally import TallyCounts, calls_of
from pilotlight_gateway.tally.tally_ring import HOUR_NS, MINUTE_NS, TEN_NS

NO_CALLS = FunctionTally()
SLOTS_A_TURN = 4
"""Functions that are added up before the event loop has its turn."""


@dataclass(frozen=True, kw_only=True)
class FunctionWindow:
    """What all gateways saw of one function in a window. Instants are unix nanoseconds."""

    function: str
    """`tenant:app.function` of the owner; `tenant:` of those that had no room of their own."""
    since_ns: int
    until_ns: int
    tally: FunctionTally = field(default_factory=FunctionTally)
    """Of calls whose callers wait."""
    jobs: FunctionTally = field(default_factory=FunctionTally)
    """Of runs of jobs."""
    home: HomeTally = field(default_factory=HomeTally)
    by_version: dict[tuple[str, str], FunctionTally] = field(default_factory=dict)
    """By version id and arm, `JOBS` or ""."""
    homes: dict[str, HomeTally] = field(default_factory=dict)
    """By version id."""
    gateways: tuple[GatewayTally, ...] = ()
    silent: tuple[str, ...] = ()
    """Gateways that did not answer: their part is missing."""

    @property
    def seconds(self) -> float:
        """How long it is."""
        return max(1, self.until_ns - self.since_ns) / 1e9


@dataclass(frozen=True, kw_only=True)
class FoundWindows:
    """The answer to one question: by the step, then those with the most calls first."""

    since_ns: int
    until_ns: int
    windows: tuple[FunctionWindow, ...]
    gateways: tuple[GatewayTally, ...]
    silent: tuple[str, ...]

    def of(self, function: str) -> FunctionWindow:
        """The window of a function, which may have had no calls."""
        found = next((window for window in self.windows if window.function == function), None)
        return found or FunctionWindow(
            function=function,
            since_ns=self.since_ns,
            until_ns=self.until_ns,
            gateways=self.gateways,
            silent=self.silent,
        )


def since_of(minutes: int, at_ns: int) -> int:
    """When a window of so many whole minutes begins that ends at an instant; beyond the last hour by tens."""
    begins_ns = at_ns - at_ns % MINUTE_NS - minutes * MINUTE_NS
    return begins_ns if minutes * MINUTE_NS <= HOUR_NS - MINUTE_NS else begins_ns - begins_ns % TEN_NS


async def added_up(
    told: Iterable[TalliesTold], asked: AskTallies, until_ns: int, silent: Iterable[str] = ()
) -> FoundWindows:
    """What gateways tell as one, by function and step."""
    told = list(told)
    gateways = tuple(answer.own for answer in told if answer.own.gateway)
    slots: dict[tuple[int, str], list[ToldTally]] = {}
    for answer in told:
        for part in answer.parts:
            slots.setdefault((part.step, part.function), []).append(part)
    found = []
    for number, ((step, function), parts) in enumerate(slots.items()):
        since_ns = asked.since_ns + step * asked.step * MINUTE_NS
        ends_ns = min(since_ns + asked.step * MINUTE_NS, until_ns) if asked.step else until_ns
        found.append(_window(function, since_ns, ends_ns, parts, gateways, tuple(silent)))
        if number % SLOTS_A_TURN == 0:
            await asyncio.sleep(0)
    found.sort(key=lambda each: (each.since_ns, -calls_of(each.tally), -calls_of(each.jobs), each.function))
    return FoundWindows(
        since_ns=asked.since_ns, until_ns=until_ns, windows=tuple(found), gateways=gateways, silent=tuple(silent)
    )


def _window(
    function: str,
    since_ns: int,
    until_ns: int,
    parts: list[ToldTally],
    gateways: tuple[GatewayTally, ...],
    silent: tuple[str, ...],
) -> FunctionWindow:
    """The parts of one function and step."""
    versions: dict[tuple[str, str], TallyCounts] = {}
    homes: dict[str, HomeCounts] = {}
    arms: dict[str, TallyCounts] = {}
    home = HomeCounts(0)
    several = len({(part.version, part.arm) for part in parts if part.tally is not None}) > 1
    for part in parts:
        if part.tally is not None:
            arms.setdefault(part.arm, TallyCounts(0)).merge(part.tally)
            if several:
                versions.setdefault((part.version, part.arm), TallyCounts(0)).merge(part.tally)
        if part.home is not None:
            home.merge(part.home)
            homes.setdefault(part.version, HomeCounts(0)).merge(part.home)
    of_arms = {arm: counts.value(counts.until_ns) for arm, counts in arms.items()}
    lone = next(((part.version, part.arm) for part in parts if part.tally is not None), None)
    by_version = {name: counts.value(counts.until_ns) for name, counts in versions.items()}
    if not several and lone is not None:
        by_version = {lone: of_arms[lone[1]]}
    return FunctionWindow(
        function=function,
        since_ns=since_ns,
        until_ns=until_ns,
        tally=of_arms.get("", NO_CALLS),
        jobs=of_arms.get(JOBS, NO_CALLS),
        home=home.value(),
        by_version=by_version,
        homes={version: counts.value() for version, counts in homes.items()},
        gateways=gateways,
        silent=silent,
    )
