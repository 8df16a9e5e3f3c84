"""The beat of the tallies: each tenth of a second what has gathered is added up, and the timer's lateness noted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog

from pilotlight_gateway.home.home_report import HomeVersionLoad
from pilotlight_gateway.tally.tally_answers import TallySources

BEAT_S = 0.1
SAMPLE_S = 1.0
"""Between two looks at the homes."""

log = structlog.get_logger(__name__)


class TallyClock:
    """Keeps tallies up to date. `loads`: what the homes of this gateway have now; `clock`: monotonic seconds."""

    def __init__(
        self,
        sources: TallySources,
        loads: Callable[[], list[HomeVersionLoad]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources = sources
        self._loads = loads
        self._clock = clock
        self._sampled_at = clock()

    def tick(self, late_s: float) -> None:
        """A beat that came so late."""
        sources, at = self._sources, self._clock()
        sources.fold()
        sources.own.note_timer(max(0.0, late_s), sources.calls.calls)
        if at - self._sampled_at >= SAMPLE_S:
            self._sampled_at = at
            sources.homes.note_sample(self._loads(), sources.wall())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Beat until the block ends."""
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(self._beat_on())
            try:
                yield
            finally:
                beating.cancel()

    async def _beat_on(self) -> None:
        while True:
            due_at = self._clock() + BEAT_S
            await asyncio.sleep(BEAT_S)
            try:
                self.tick(self._clock() - due_at)
            except Exception:  # what is counted is worth less than the calls that go on
                log.exception("what was counted of calls could not be added up")
