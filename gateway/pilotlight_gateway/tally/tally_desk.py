"""Answers questions about functions: all gateways are asked, and what they tell is added up.

A gateway that does not answer in time is named in what is found. Each question is a share of every gateway's time, so
the same one is asked once a second, whoever wants it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.messages.scheduling import AskTallies, TalliesTold
from pilotlight_gateway.tally.tally_answers import TallyAnswers
from pilotlight_gateway.tally.tally_exchange import NoPeers, TallyPeers
from pilotlight_gateway.tally.tally_ring import MINUTE_NS
from pilotlight_gateway.tally.tally_window import FoundWindows, FunctionWindow, added_up, since_of

FRESH_S = 1.0
"""For so long an answer is not asked for again."""
REMEMBERED = 64
"""Answers."""
MOST_QUESTIONS, OF_TENANT = 16, 4
"""At a time, of all and about one tenant's functions: a day of hundreds of them is seconds of each gateway's time."""


class TallyDesk:
    """Answers questions about functions. `clock`: monotonic seconds, `wall`: unix nanoseconds."""

    def __init__(
        self,
        answers: TallyAnswers,
        peers: TallyPeers | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        self._answers = answers
        self._peers = peers or NoPeers()
        self._clock = clock
        self._wall = wall
        self._fresh: dict[tuple[object, ...], tuple[float, FoundWindows]] = {}
        self._fresh_totals: dict[str, tuple[float, list[TalliesTold]]] = {}
        self._busy = Counter[str]()
        """Questions that are being answered, by tenant."""

    async def window(self, function: str, minutes: int = 10) -> FunctionWindow:
        """A function (`tenant:app.function`) over the last whole minutes and the one that goes on.

        Raises:
            Unavailable: too much is asked at once.
        """
        found = await self._asked(("one", function, minutes), minutes, lambda since: AskTallies(
            functions=(function,), since_ns=since
        ))  # fmt: skip
        return found.of(function)

    async def series(self, function: str, minutes: int, step: int) -> list[FunctionWindow]:
        """The same by steps of so many minutes, the oldest first; steps without calls are there too. Raises as
        `window`.
        """
        found = await self._asked(("series", function, minutes, step), minutes, lambda since: AskTallies(
            functions=(function,), since_ns=since, step=step
        ))  # fmt: skip
        known, step_ns, until_ns = {each.since_ns: each for each in found.windows}, step * MINUTE_NS, found.until_ns
        begins = range(found.since_ns, until_ns, step_ns)
        empty = [FunctionWindow(function=function, since_ns=at, until_ns=min(at + step_ns, until_ns)) for at in begins]
        return [known.get(each.since_ns, each) for each in empty]

    async def tenant(self, tenant: str, minutes: int = 10) -> FoundWindows:
        """The functions of a tenant, those with the most calls first, without stages and samples; "": of all. Raises
        as `window`.
        """
        return await self._asked(("tenant", tenant, minutes), minutes, lambda since: AskTallies(
            tenant=tenant, since_ns=since, brief=True
        ))  # fmt: skip

    async def brief(self, functions: tuple[str, ...], minutes: int) -> FoundWindows:
        """Functions in one question, without stages and samples, those without calls left out. Raises as `window`."""
        return await self._asked(("brief", functions, minutes), minutes, lambda since: AskTallies(
            functions=functions, since_ns=since, brief=True
        ))  # fmt: skip

    async def totals(self, tenant: str) -> list[TalliesTold]:
        """What each gateway has counted of a tenant's functions since it began. Raises as `window`."""
        at = self._clock()
        known = self._fresh_totals.get(tenant)
        if known is not None and at - known[0] < FRESH_S:
            return known[1]
        with self._taken(tenant):
            told, _ = await self._answers_to(AskTallies(tenant=tenant, totals=True))
        self._fresh_totals = {name: kept for name, kept in self._fresh_totals.items() if at - kept[0] < FRESH_S}
        if len(self._fresh_totals) < REMEMBERED:
            self._fresh_totals[tenant] = (at, told)
        return told

    async def _asked(
        self, question: tuple[object, ...], minutes: int, ask: Callable[[int], AskTallies]
    ) -> FoundWindows:
        at, until_ns = self._clock(), self._wall()
        asked = ask(since_of(minutes, until_ns))
        question = (*question, asked.since_ns)
        known = self._fresh.get(question)
        if known is not None and at - known[0] < FRESH_S:
            return known[1]
        with self._taken(asked.functions[0].partition(":")[0] if asked.functions else asked.tenant):
            told, silent = await self._answers_to(asked)
            found = await added_up(told, asked, until_ns, silent)
        self._fresh = {name: kept for name, kept in self._fresh.items() if at - kept[0] < FRESH_S}
        if len(self._fresh) < REMEMBERED:
            self._fresh[question] = (at, found)
        return found

    @contextmanager
    def _taken(self, tenant: str) -> Iterator[None]:
        busy = self._busy
        if busy[tenant] >= OF_TENANT or busy.total() >= MOST_QUESTIONS:
            raise Unavailable("Too much is asked of the counts of calls at once.", code="overloaded", retry_after=1.0)
        busy[tenant] += 1
        try:
            yield
        finally:
            busy[tenant] -= 1
            if not busy[tenant]:
                del busy[tenant]

    async def _answers_to(self, asked: AskTallies) -> tuple[list[TalliesTold], list[str]]:
        own, (told, silent) = await asyncio.gather(self._answers.answer(asked), self._peers.ask(asked))
        return [own, *told], silent
