"""Follows streams of lines for those who look: the last of each, for all viewers who are told the same.

A page that is drawn each second finds the last lines here; asking a gateway for them each second would have it read the
whole log as often. A stream that nobody has looked at for a while ends, and one that breaks off is begun anew when
somebody looks again.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem
from pilotlight_gateway.dashboard.page_parts.line_streams import STREAMS, LineSource

KEPT_LINES, KEPT_BYTES = 400, 256 * 2**10
"""Of each stream, the last ones."""
OF_AUDIENCE = 4
"""Streams for viewers who are told the same: as many pages as they may look at, of which each follows one."""
UNREAD_S, LOOK_S = 15.0, 5.0
QUIET_S, EMPTY_S, SETTLES_S = 0.1, 0.7, 3.0
"""The first lines are all there when none has come for so long; of a log without lines; and at the latest."""


@dataclass(kw_only=True)
class FollowedStream:
    """The last lines of one."""

    read_at: float
    lines: deque[tuple[Any, int]] = field(default_factory=deque)
    taken: int = 0
    size: int = 0
    settled: bool = False
    ended: bool = False
    problem: ApiProblem | None = None
    task: asyncio.Task[None] | None = None

    def take(self, line: bytes) -> None:
        """One more; the oldest go."""
        try:
            value = msgspec.json.decode(line)
        except msgspec.DecodeError:
            return
        self.lines.append((value, len(line)))
        self.size += len(line)
        self.taken += 1
        while len(self.lines) > KEPT_LINES or self.size > KEPT_BYTES:
            self.size -= self.lines.popleft()[1]


class FollowedLines:
    """All that are followed. `clock` is monotonic seconds."""

    def __init__(self, source: LineSource, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._streams: dict[tuple[Any, str], FollowedStream] = {}
        self._group: asyncio.TaskGroup | None = None

    def __len__(self) -> int:
        return len(self._streams)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[FollowedLines]:
        """Follows until the block ends."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            looking = group.create_task(self._look_again())
            try:
                yield self
            finally:
                self._group = None
                looking.cancel()
                for one in self._streams.values():
                    if one.task is not None:
                        one.task.cancel()
                self._streams.clear()

    async def read(self, audience: object, path: str, token: str) -> tuple[Any, ...]:
        """The last lines at a path, as JSON values, the oldest first.

        Raises:
            ApiProblem: it is refused, or there are as many streams as there may be.
        """
        key = (audience, path)
        found = self._streams.get(key)
        if found is None or (found.ended and found.settled):
            found = self._begin(key, token)
        found.read_at = self._clock()
        await _settle(found)
        if found.problem is not None:
            self._streams.pop(key, None)
            raise found.problem
        return tuple(value for value, _ in found.lines)

    def _begin(self, key: tuple[Any, str], token: str) -> FollowedStream:
        self._streams.pop(key, None)
        mine = sorted((one.read_at, other) for other, one in self._streams.items() if other[0] == key[0])
        if len(mine) >= OF_AUDIENCE:
            self._end(mine[0][1])  # a viewer who goes on to another log has left one
        if self._group is None or len(self._streams) >= STREAMS:
            raise ApiProblem(0, "overloaded", "As many logs are followed as may be: try again in a minute.")
        made = self._streams[key] = FollowedStream(read_at=self._clock())
        made.task = self._group.create_task(self._follow(made, key[1], token))
        return made

    async def _follow(self, stream: FollowedStream, path: str, token: str) -> None:
        try:
            async with aclosing(self._source.lines(path, token)) as lines:
                async for line in lines:
                    stream.take(line)
        except ApiProblem as problem:
            stream.problem = problem
        finally:
            stream.ended = True

    async def _look_again(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self.end_unread()

    def end_unread(self) -> None:
        """End those that nobody has looked at lately."""
        at = self._clock()
        for key in [key for key, one in self._streams.items() if at - one.read_at > UNREAD_S]:
            self._end(key)

    def _end(self, key: tuple[Any, str]) -> None:
        task = self._streams.pop(key).task
        if task is not None:
            task.cancel()


async def _settle(stream: FollowedStream) -> None:
    """Wait until the lines that were there are here."""
    begun = time.monotonic()
    while not stream.settled:
        before = stream.taken
        if not stream.ended:
            await asyncio.sleep(QUIET_S)
        waited = time.monotonic() - begun
        is_quiet = stream.taken == before and (before > 0 or waited >= EMPTY_S)
        stream.settled = stream.ended or is_quiet or waited >= SETTLES_S
