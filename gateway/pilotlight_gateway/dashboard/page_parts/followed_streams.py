"""Follows streams of events for those who look: the last of each, for all viewers who are told the same.

A page that is drawn each second finds the last ones here; asking a gateway for them each second would have it read a
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
import structlog

from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem
from pilotlight_gateway.dashboard.page_parts.gateway_streams import STREAMS, StreamSource

log = structlog.get_logger(__name__)

LOGGED_OUT = 401
KEPT_VALUES, KEPT_BYTES = 400, 256 * 2**10
"""Of each stream, the last ones."""
OF_AUDIENCE, LEFT_S = 6, 2.5
"""Streams for viewers who are told the same, of which one that nobody has read for so long gives way to another."""
OF_TENANT = 24
"""... and for all viewers of a tenant, which may make keys of as many kinds as there are sets of scopes."""
AGAIN_S = 3.0
"""From the beginning of a stream that has ended to that of the next: a log is read from its start each time."""
UNREAD_S, LOOK_S = 15.0, 5.0
QUIET_S, EMPTY_S, SETTLES_S = 0.1, 0.5, 3.0
"""The first ones are all there when none has come for so long; where none comes at all; and at the latest."""


@dataclass(kw_only=True)
class FollowedStream:
    """The last values of one."""

    token: str
    """By whose session it was asked for."""
    begun_at: float
    read_at: float
    values: deque[tuple[Any, int]] = field(default_factory=deque)
    taken: int = 0
    size: int = 0
    settled: bool = False
    ended: bool = False
    problem: ApiProblem | None = None
    task: asyncio.Task[None] | None = None

    def take(self, data: bytes) -> None:
        """One more; the oldest go."""
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        self.values.append((value, len(data)))
        self.size += len(data)
        self.taken += 1
        while len(self.values) > KEPT_VALUES or self.size > KEPT_BYTES:
            self.size -= self.values.popleft()[1]


class FollowedStreams:
    """All that are followed. `clock` is monotonic seconds."""

    def __init__(self, source: StreamSource, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._streams: dict[tuple[Any, str], FollowedStream] = {}
        self._group: asyncio.TaskGroup | None = None

    def __len__(self) -> int:
        return len(self._streams)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[FollowedStreams]:
        """Follows until the block ends."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            looking = group.create_task(self._refresh())
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
        """The last values at a path, the oldest first.

        Raises:
            ApiProblem: it is refused, or there are as many streams as there may be.
        """
        key = (audience, path)
        found = self._streams.get(key)
        if found is None or (found.ended and self._clock() - found.begun_at >= AGAIN_S):
            found = self._begin(key, token)
        found.read_at = self._clock()
        await _settle(found)
        if found.problem is not None and found.problem.status == LOGGED_OUT and found.token != token:
            found = self._begin(key, token)  # the session that asked for all has just ended
            await _settle(found)
        if found.problem is not None:
            raise found.problem
        return tuple(value for value, _ in found.values)

    def _begin(self, key: tuple[Any, str], token: str) -> FollowedStream:
        self._streams.pop(key, None)
        mine = sorted((one.read_at, other) for other, one in self._streams.items() if other[0] == key[0])
        at = self._clock()
        if len(mine) >= OF_AUDIENCE and at - mine[0][0] >= LEFT_S:
            self._end(mine.pop(0)[1])  # whoever goes on to another log has left one
        of_tenant = sum([_tenant_of(audience) == _tenant_of(key[0]) for audience, _ in self._streams])
        is_full = len(self._streams) >= STREAMS or len(mine) >= OF_AUDIENCE or of_tenant >= OF_TENANT
        if self._group is None or is_full:
            raise ApiProblem(429, "overloaded", "As many streams are followed as may be: close a window, or try later.")
        made = self._streams[key] = FollowedStream(token=token, begun_at=at, read_at=at)
        made.task = self._group.create_task(self._follow(made, key[1], token))
        return made

    async def _follow(self, stream: FollowedStream, path: str, token: str) -> None:
        try:
            async with aclosing(self._source.events(path, token)) as events:
                async for one in events:
                    stream.take(one)
        except ApiProblem as problem:
            stream.problem = problem
        except Exception:  # one stream takes none of the others with it
            log.exception("a stream could not be followed", path=path)
            stream.problem = ApiProblem(
                0, "internal", "This stream could not be followed: the dashboard's log says why."
            )
        finally:
            stream.ended = True

    async def _refresh(self) -> None:
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


def _tenant_of(audience: object) -> object:
    return audience[0] if isinstance(audience, tuple) else audience


async def _settle(stream: FollowedStream) -> None:
    """Wait until those that were there are here."""
    begun = time.monotonic()
    while not stream.settled:
        before = stream.taken
        if not stream.ended:
            await asyncio.sleep(QUIET_S)
        waited = time.monotonic() - begun
        is_quiet = stream.taken == before and (before > 0 or waited >= EMPTY_S)
        stream.settled = stream.ended or is_quiet or waited >= SETTLES_S
