"""Callers in a process of their own, so that what one crowd costs to make is not in another's stopwatch.

    with crowd([Member(…), …]) as answers:   the process starts, and calls until each member's time is up
        …
    answers()                                 what each member was answered, by name

`python -m benchmarks.crowd PLAN RESULT` is that process. Instants are of the machine's monotonic clock, which all its
processes share. A request costs about 20 µs here: no task and no timer per call, a pool of connections per gateway.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import msgspec
import uvloop

TICK_S = 0.001
"""How often arrivals that are due are sent."""
PATIENCE_S = 30.0
"""For the last answers."""
LEAST_PAUSE_S = 0.05


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One tenant of a crowd. Instants are monotonic seconds."""

    name: str
    key: str
    urls: tuple[str, ...]
    """Gateways, called in turn."""
    ref: str
    sizes_ms: tuple[float, ...]
    """Of which each call has one, at random."""
    begins: float
    until: float
    rate: float = 0.0
    """Calls per second, whether or not the last ones were answered, at random instants. 0: `outstanding` says."""
    ramp_s: float = 0.0
    """Seconds in which the rate rises from nothing, so that the calls do not all begin at once."""
    outstanding: int = 0
    """Calls that are kept waiting or running; whoever is refused comes again when told."""
    deadline_ms: float = 20_000.0
    stages: bool = False
    """Whether the answers are read for how long the calls were queued."""


class Answered(msgspec.Struct, frozen=True, array_like=True):
    """One answer. `status` 0: the connection broke."""

    due: float
    """When it should have been sent: what is sent late has waited for its crowd, as a user would have."""
    ended: float
    status: int
    size_ms: float
    """What the call asked for: how long it sleeps."""
    queue_ms: float = 0.0
    """How long it waited for its grant, as its gateway says; of members of whom that is wanted."""

    @property
    def ms(self) -> float:
        """From when it was due to the last byte."""
        return (self.ended - self.due) * 1000.0


Answers = dict[str, list[Answered]]


@contextmanager
def crowd(members: Sequence[Member]) -> Iterator[Callable[[], Answers]]:
    """Run the members in a process; what is yielded waits for its end and returns the answers."""
    with tempfile.TemporaryDirectory() as folder:
        plan, result = Path(folder) / "plan", Path(folder) / "result"
        plan.write_bytes(msgspec.msgpack.encode(members))
        process = subprocess.Popen([sys.executable, "-m", "benchmarks.crowd", str(plan), str(result)])

        def answers() -> Answers:
            last = max((member.until for member in members), default=0.0)
            if process.wait(max(0.0, last - time.monotonic()) + 2 * PATIENCE_S):
                raise SystemExit("a crowd ended with an error")
            return msgspec.msgpack.decode(result.read_bytes(), type=Answers)

        try:
            yield answers
        finally:
            process.kill()
            process.wait()


def is_crowd(pid: int) -> bool:
    """Whether a process is one of these."""
    try:
        return b"benchmarks.crowd" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


class _Line(asyncio.Protocol):
    """A connection: one call at a time."""

    def __init__(self, back: Callable[[_Line, int, float, bytes], None]) -> None:
        self._back = back
        self._buffer = b""
        self.transport: asyncio.Transport | None = None
        self.due = self.size_ms = 0.0
        self.busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self.transport = None
        if self.busy:
            self._over(0, 0.0, b"")

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer = self._buffer + data if self._buffer else data
        end = buffer.find(b"\r\n\r\n")
        if end >= 0 and len(buffer) >= end + 4 + int(_header(buffer, end, b"content-length") or 0):
            status = int(buffer[9:12])
            wait = _header(buffer, end, b"retry-after-ms") if status != 200 else b""
            self._buffer = b""
            self._over(status, float(wait or 0.0) / 1000.0, buffer[end + 4 :])

    def _over(self, status: int, wait_s: float, body: bytes) -> None:
        self.busy = False
        self._back(self, status, wait_s, body)


def _header(buffer: bytes, end: int, name: bytes) -> bytes:
    start = buffer.find(b"\r\n" + name + b": ", 0, end)
    if start < 0:
        return b""
    start += len(name) + 4
    return buffer[start : buffer.find(b"\r\n", start)]


class _Caller:
    """A member at one gateway."""

    def __init__(self, member: Member, url: str, back: Callable[[_Line, int, float, bytes], None]) -> None:
        split = urlsplit(url)
        self._host, self._port = split.hostname or "127.0.0.1", split.port or 80
        head = (
            f"POST /v1/functions/{member.ref}/calls HTTP/1.1\r\nHost: {split.netloc}\r\n"
            f"Authorization: Bearer {member.key}\r\nContent-Type: application/json\r\nContent-Length: "
        )
        self._requests = {size: _request(head, size, member.deadline_ms) for size in member.sizes_ms}
        self._back = back
        self._idle: deque[_Line] = deque()
        self._opening: set[asyncio.Task[None]] = set()

    def call(self, size_ms: float, due: float) -> None:
        """Send a call that was due at an instant, on a new connection if need be."""
        while self._idle:
            line = self._idle.pop()
            if line.transport is not None:
                self._send(line, size_ms, due)
                return
        opening = asyncio.create_task(self._open(size_ms, due))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)

    def close(self) -> None:
        """Close the idle connections."""
        for line in self._idle:
            if line.transport is not None:
                line.transport.close()

    async def _open(self, size_ms: float, due: float) -> None:
        line = _Line(self._over)
        line.due, line.size_ms = due, size_ms
        try:
            await asyncio.get_running_loop().create_connection(lambda: line, self._host, self._port)
        except OSError:
            self._over(line, 0, 0.0, b"")
        else:
            self._send(line, size_ms, due)

    def _send(self, line: _Line, size_ms: float, due: float) -> None:
        line.due, line.size_ms, line.busy = due, size_ms, True
        if line.transport is None:
            self._over(line, 0, 0.0, b"")
        else:
            line.transport.write(self._requests[size_ms])

    def _over(self, line: _Line, status: int, wait_s: float, body: bytes) -> None:
        if line.transport is not None:
            self._idle.append(line)
        self._back(line, status, wait_s, body)


def _request(head: str, size_ms: float, deadline_ms: float) -> bytes:
    body = msgspec.json.encode({"input": {"ms": size_ms}, "deadline_ms": deadline_ms}).decode()
    return f"{head}{len(body)}\r\n\r\n{body}".encode()


class _Player:
    """A member at all its gateways, and what it was answered."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._callers = [_Caller(member, url, self._over) for url in member.urls]
        self._turn = 0
        self._chance = random.Random(member.name)
        self.answers: list[Answered] = []
        self._waiting = 0
        self._landed = asyncio.Event()
        """Nothing waits."""
        self._landed.set()

    async def play(self) -> None:
        """Call until its time is up, and wait for the last answers."""
        member = self._member
        await asyncio.sleep(member.begins - time.monotonic())
        for _ in range(member.outstanding):
            self._next(time.monotonic())
        while (now := time.monotonic()) < member.until:
            await (self._arrive() if member.rate else asyncio.sleep(member.until - now))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await self._landed.wait()
        for caller in self._callers:
            caller.close()

    async def _arrive(self) -> None:
        """Send what is due, tick by tick."""
        member = self._member
        due = time.monotonic()
        while (now := time.monotonic()) < member.until:
            while due <= now:
                self._next(due)
                rise = min(1.0, (due - member.begins) / member.ramp_s + 0.01) if member.ramp_s else 1.0
                due += self._chance.expovariate(member.rate * rise)
            await asyncio.sleep(max(TICK_S, due - now))

    def _next(self, due: float) -> None:
        self._turn += 1
        self._waiting += 1
        self._landed.clear()
        self._callers[self._turn % len(self._callers)].call(self._chance.choice(self._member.sizes_ms), due)

    def _over(self, line: _Line, status: int, wait_s: float, body: bytes) -> None:
        ended = time.monotonic()
        stages = msgspec.json.decode(body)["latency"]["stages"] if self._member.stages and status == 200 else {}
        self._waiting -= 1
        if not self._waiting:
            self._landed.set()
        self.answers.append(Answered(line.due, ended, status, line.size_ms, stages.get("queue", 0.0)))
        if self._member.outstanding and ended < self._member.until:
            if status == 200:
                self._next(ended)
            else:
                asyncio.get_running_loop().call_later(max(LEAST_PAUSE_S, wait_s), self._again)

    def _again(self) -> None:
        if (now := time.monotonic()) < self._member.until:
            self._next(now)


async def _play(members: Sequence[Member]) -> Answers:
    players = {member.name: _Player(member) for member in members}
    async with asyncio.TaskGroup() as group:
        for player in players.values():
            group.create_task(player.play())
    return {name: player.answers for name, player in players.items()}


def main() -> None:
    """Play a plan, write what was answered."""
    plan, result = map(Path, sys.argv[1:3])
    members = msgspec.msgpack.decode(plan.read_bytes(), type=list[Member])
    result.write_bytes(msgspec.msgpack.encode(uvloop.run(_play(members))))


if __name__ == "__main__":
    main()
