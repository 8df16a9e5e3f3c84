"""A node that was taken over: what its agent's user of the bus lets it send, and what it hears."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pilotlight_core.bus import Bus, BusError, bus_users, connect
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.call_messages import Run
from pilotlight_core.model.messages.message import Message
from tests.system.support.platform import Platform
from tests.waiting import wait_until

VARIABLE = "PILOTLIGHT_NATS_URL="


def bus_url_of(pid: int) -> str:
    """The address of the bus that a process was given, with its user and password."""
    words = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return next(word.removeprefix(VARIABLE) for word in words if word.startswith(VARIABLE))


class BusClient:
    """A connection under somebody's user, for tests without a loop."""

    def __init__(self, url: str, inbox: str) -> None:
        self.runs: list[Run] = []
        """The calls that were heard on their way to an agent."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._stop = asyncio.Event()
        self._bus: Bus
        opened = threading.Event()

        async def live() -> None:
            async with connect(url, name="hostile", inbox=inbox, makes_streams=False) as self._bus:
                opened.set()
                await self._stop.wait()

        self._life = asyncio.run_coroutine_threadsafe(live(), self._loop)
        assert opened.wait(30.0)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._life.result(30.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30.0)
        self._loop.close()

    def hear_runs(self, node: str) -> None:
        """Note each call that is sent to the node."""

        def note(_: str, message: Any, __: str) -> None:
            if isinstance(message, Run):
                self.runs.append(message)

        async def listen() -> None:
            await self._bus.subscribe(f"pl.*.node.{node}.run.*", note)
            await self._bus.flush()

        self._do(listen)

    def say(self, message: Message, *subjects: str, times: int = 1) -> None:
        """Publish on each subject that may be the right one; the server refuses what this user may not."""

        async def publish() -> None:
            for _ in range(times):
                for subject in subjects:
                    await self._bus.publish(subject, message)
            await self._bus.flush()

        self._do(publish)

    def store(self, message: Message, *subjects: str) -> int:
        """Store in a stream, where this user may; how often that was."""

        async def store() -> int:
            stored = 0
            for subject in subjects:
                with contextlib.suppress(BusError):
                    await self._bus.store(subject, message, id=token(), timeout=1.0)
                    stored += 1
            return stored

        count: int = self._do(store)
        return count

    def ask(self, message: Message, subject: str) -> Any:
        """The answer to a question."""
        return self._do(lambda: self._bus.request(subject, message, 30.0))

    def _do(self, work: Callable[[], Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(60.0)


@contextmanager
def hostile_node(platform: Platform, name: str, node: str) -> Iterator[BusClient]:
    """The bus as the agent of the part `name` may use it; `node` is its node."""
    client = BusClient(bus_url_of(platform.pids[name]), bus_users.agent(node).inbox)
    try:
        yield client
    finally:
        client.close()


@contextmanager
def spying_operator(platform: Platform) -> Iterator[BusClient]:
    """Everything that is said: what an attacker might have found out otherwise."""
    client = BusClient(platform.nats_url, bus_users.operator().inbox)
    try:
        client.hear_runs("*")
        yield client
    finally:
        client.close()


def run_of(spy: BusClient, known: int) -> Run:
    """The next call that is sent, after the first `known` ones."""
    return wait_until(lambda: spy.runs[known] if len(spy.runs) > known else None, "the call is sent")
