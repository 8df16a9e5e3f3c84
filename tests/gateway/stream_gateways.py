"""Gateways that read each other's streams, over a bus that is nothing but their handlers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from pilotlight_core.bus import BusDown, Handler
from pilotlight_core.model.messages.message import Message
from pilotlight_gateway.streams.stream_exchange import StreamExchange
from pilotlight_gateway.streams.stream_keeper import StreamKeeper


class Heard:
    """A subscription; `unsubscribe` ends it."""

    def __init__(self, forget: Callable[[], None]) -> None:
        self._forget = forget

    async def unsubscribe(self) -> None:
        self._forget()


class HandlerBus:
    """Each subject has one handler."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self._jobs: list[asyncio.Task[None]] = []
        self._asked: dict[str, asyncio.Future[Message]] = {}

    async def subscribe(self, subject: str, handler: Handler) -> Any:
        self.handlers[subject] = handler
        return Heard(lambda: self.handlers.pop(subject, None) and None)

    async def request(self, subject: str, message: Message, timeout: float) -> Any:
        if subject not in self.handlers:
            raise BusDown("nobody listens")
        reply = f"reply.{len(self._asked)}"
        answer = self._asked[reply] = asyncio.get_running_loop().create_future()
        self.handlers[subject](subject, message, reply)
        async with asyncio.timeout(timeout):
            return await answer

    def spawn(self, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self._jobs.append(task := asyncio.get_running_loop().create_task(job))
        return task

    async def publish(self, subject: str, message: Message) -> None:
        self._asked[subject].set_result(message)


class Owners:
    """The gateways that live, by the epochs in the ids of their calls."""

    def __init__(self, processes: dict[int, str], own: str) -> None:
        self.processes, self.own = processes, own

    @property
    def newest(self) -> int:
        return max(self.processes, default=0)

    def process_of(self, epoch: int) -> str | None:
        return self.processes.get(epoch)

    def others(self) -> list[str]:
        return [process for process in self.processes.values() if process != self.own]


def gateway_of(
    bus: HandlerBus, processes: dict[int, str], name: str, clock: Callable[[], float] = time.monotonic
) -> StreamExchange:
    """The gateway `name` of these."""
    return StreamExchange(bus, StreamKeeper(clock), Owners(processes, name), region="local", gateway=name)


def lone_streams() -> StreamExchange:
    """Of a gateway that is alone."""
    return gateway_of(HandlerBus(), {}, "gw1")
