"""What this gateway tells of a window: its own part of `TallyDesk`'s answers, and the answer to other gateways."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from pilotlight_core.model.messages.scheduling import AskTallies, TalliesTold
from pilotlight_core.model.messages.seeing.tallies import (
    MOST_SLOWEST,
    MOST_TOLD,
    FunctionTally,
    HomeTally,
    SketchCounts,
    ToldTally,
)
from pilotlight_gateway.tally.gateway_tallies import GatewayTallies
from pilotlight_gateway.tally.home_tallies import HomeCounts, HomeTallies
from pilotlight_gateway.tally.job_tallies import job_tallies
from pilotlight_gateway.tally.tallies import Tallied, Tallies, TallyKey
from pilotlight_gateway.tally.tally import TallyCounts, calls_of
from pilotlight_gateway.tally.tally_ring import MINUTE_NS
from pilotlight_gateway.tally.tally_totals import TotalCounts

ANSWER_BYTES = 800_000
"""Of one answer: below the size of a message of the bus."""
PARTS_A_TURN = 16
"""That are added up before the event loop has its turn: a millisecond."""
PART_SAMPLES = 160
"""Of one function and step."""

_encoder = msgspec.msgpack.Encoder()

TallySlot = tuple[TallyKey, int]
"""Whose, and the step."""


@dataclass(frozen=True, kw_only=True)
class TallySources:
    """What there is to tell."""

    calls: Tallies
    """Of callers who wait."""
    jobs: Tallies = field(default_factory=job_tallies)
    """Of runs of jobs."""
    homes: HomeTallies
    own: GatewayTallies
    wall: Callable[[], int] = time.time_ns
    """Unix nanoseconds."""

    @property
    def arms(self) -> tuple[Tallies, Tallies]:
        """Both kinds of calls."""
        return self.calls, self.jobs

    def fold(self) -> None:
        """Add up what has gathered."""
        for each in self.arms:
            each.fold()


class TallyAnswers:
    """Adds up what this gateway has of a window."""

    def __init__(self, sources: TallySources) -> None:
        self._sources = sources

    async def answer(self, asked: AskTallies) -> TalliesTold:
        """The answer, in turns of the event loop that are short."""
        sources = self._sources
        sources.fold()
        if asked.totals:
            return await self._totals(asked)
        tallies, homes = await self._tallies(asked), await self._homes(asked)
        parts: list[ToldTally] = []
        for number, slot in enumerate({**tallies, **homes}, 1):
            samples = 0 if asked.brief else PART_SAMPLES
            parts.append(answer_part(slot, tallies.get(slot), homes.get(slot), samples=samples))
            if number % PARTS_A_TURN == 0:
                await asyncio.sleep(0)
        kept = await within(parts)
        own = sources.own.window(asked.since_ns)
        return TalliesTold(parts=tuple(kept), own=own, left_out=len(parts) - len(kept))

    async def _tallies(self, asked: AskTallies) -> dict[TallySlot, TallyCounts]:
        found, added = dict[TallySlot, TallyCounts](), 0
        for calls, tallied in self._asked_for(asked):
            for part in calls.parts_of(tallied, asked.since_ns):
                slot = (tallied.key, step_of(asked, part.since_ns))
                if slot not in found:
                    found[slot] = TallyCounts(0)
                found[slot].merge(brief(part) if asked.brief else part)
                added += 1
                if added % PARTS_A_TURN == 0:
                    await asyncio.sleep(0)
        return found

    def _asked_for(self, asked: AskTallies) -> list[tuple[Tallies, Tallied]]:
        return [(calls, each) for calls in self._sources.arms for each in calls.each() if is_asked(asked, each.key)]

    async def _homes(self, asked: AskTallies) -> dict[TallySlot, HomeCounts]:
        homes, found, added = self._sources.homes, dict[TallySlot, HomeCounts](), 0
        for known in homes.each():
            if is_asked(asked, known.key):
                for seen in homes.parts_of(known, asked.since_ns):
                    slot = (known.key, step_of(asked, seen.since_ns))
                    if slot not in found:
                        found[slot] = HomeCounts(0)
                    found[slot].merge(seen)
                    added += 1
                    if added % (4 * PARTS_A_TURN) == 0:
                        await asyncio.sleep(0)
        return found

    async def _totals(self, asked: AskTallies) -> TalliesTold:
        functions: dict[tuple[str, str], TotalCounts] = {}
        for number, (calls, tallied) in enumerate(self._asked_for(asked)):
            whose = (tallied.key.function, tallied.key.arm)
            functions.setdefault(whose, TotalCounts()).merge(calls.totals_of(tallied))
            if number % PARTS_A_TURN == 0:
                await asyncio.sleep(0)
        found = [ToldTally(function=name, arm=arm, totals=each.value()) for (name, arm), each in functions.items()]
        kept = await within(found)
        own = self._sources.own.window(self._sources.wall())
        return TalliesTold(parts=tuple(kept), own=own, left_out=len(found) - len(kept))


def is_asked(asked: AskTallies, key: TallyKey) -> bool:
    """Whether a question is for this key."""
    if asked.functions:
        return key.function in asked.functions
    return not asked.tenant or key.function.startswith(f"{asked.tenant}:")


def step_of(asked: AskTallies, since_ns: int) -> int:
    """In which step of the window a part lies that begins at an instant."""
    return max(0, since_ns - asked.since_ns) // (asked.step * MINUTE_NS) if asked.step else 0


def brief(part: FunctionTally) -> FunctionTally:
    """A part's counts and durations alone."""
    none = SketchCounts()
    return msgspec.structs.replace(
        part, stages={}, samples=(), slowest=(), gaps=none, first_chunks=none, failed_durations=none, cold_steps={}
    )


def answer_part(slot: TallySlot, counts: TallyCounts | None, seen: HomeCounts | None, *, samples: int) -> ToldTally:
    """One part of an answer."""
    (function, version, arm), step = slot
    tally = counts.value(counts.until_ns, samples, MOST_SLOWEST if samples else 0) if counts is not None else None
    home: HomeTally | None = seen.value() if seen is not None else None
    return ToldTally(function=function, version=version, arm=arm, step=step, tally=tally, home=home)


def _calls_of(part: ToldTally) -> int:
    if part.tally is not None:
        return calls_of(part.tally)
    return part.totals.ended + sum(part.totals.failures.values()) if part.totals is not None else -1


async def within(parts: list[ToldTally]) -> list[ToldTally]:
    """As many as one message holds, those with the most calls first."""
    parts = sorted(parts, key=_calls_of, reverse=True)
    kept, size = [], 0
    for number, part in enumerate(parts[:MOST_TOLD], 1):
        size += len(_encoder.encode(part))
        if size > ANSWER_BYTES:
            break
        kept.append(part)
        if number % (4 * PARTS_A_TURN) == 0:
            await asyncio.sleep(0)
    return kept
