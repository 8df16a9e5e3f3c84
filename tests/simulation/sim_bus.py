"""The bus of a simulated process: the real `Bus` without a connection, over a `StreamServer`.

A request to the server is a message to it and one back. In a storm either may be late or lost, so the process does not
know whether the request was done. It repeats a write under the same message id.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pilotlight_core.bus import NO_RESPONDERS, Bus, BusDown, BusError, BusTimeout, Handler, NoResponders, WrongRevision
from pilotlight_core.bus.jetstream import (
    ANSWER_TIMEOUT,
    PAGE_MESSAGES,
    READ_TIMEOUT,
    JetStream,
    OutgoingMessage,
    StreamMessage,
    StreamPage,
)
from tests.simulation.sim_loop import SimLoop
from tests.simulation.stream_server import StreamServer
from tests.simulation.world import OWN

if TYPE_CHECKING:
    from tests.simulation.gateway_process import GatewayProcess

T = TypeVar("T")

LOST = 0.03
"""Of requests in a storm, and as many of the answers to them."""
LATE = 0.01
LATE_S = 3.0


class SimJetStream(JetStream):
    """The stream verbs of one life of a process."""

    def __init__(self, process: GatewayProcess, server: StreamServer, loop: SimLoop) -> None:
        self._process = process
        self._server = server
        self._loop = loop
        self._waiting: set[asyncio.Future[Any]] = set()

    def disconnect(self) -> None:
        """Fail the requests that wait for an answer."""
        for waits in self._waiting:
            if not waits.done():
                waits.set_exception(BusDown("The connection is lost."))

    async def store(
        self,
        subject: str,
        payload: bytes,
        *,
        message_id: str = "",
        timeout: float = 10.0,
        headers: dict[str, str] | None = None,
    ) -> int:
        name = message_id or f"{self._process.instance} {self._process.next_number()}"
        verb = partial(self._server.store, subject, payload, name, headers or {})
        return await self.persist(partial(self._ask, verb), timeout)

    async def store_together(self, messages: Sequence[OutgoingMessage], *, timeout: float) -> int:
        return await self._ask(partial(self._server.store_together, messages), timeout)

    async def last(self, stream: str, subject: str) -> StreamMessage | None:
        return await self.persist(partial(self._ask, partial(self._server.last, subject)), READ_TIMEOUT)

    async def page(
        self, stream: str, subject: str, seq: int, *, messages: int = PAGE_MESSAGES, timeout: float = ANSWER_TIMEOUT
    ) -> StreamPage:
        return await self._ask(partial(self._server.page, stream, subject, seq, messages), timeout)

    async def delete(self, stream: str, seq: int) -> None:
        await self.persist(partial(self._ask, partial(self._server.delete, stream, seq)), READ_TIMEOUT)

    async def depths(self, stream: str, subject: str) -> dict[str, int]:
        return await self.persist(partial(self._ask, partial(self._server.depths, stream)), READ_TIMEOUT)

    async def filled(self, stream: str) -> float:
        return 0.0

    async def purge(self, stream: str, *, subject: str, below: int) -> int:
        return await self.persist(partial(self._ask, partial(self._server.purge, stream, subject, below)), READ_TIMEOUT)

    async def _ask(self, verb: Callable[[], T], timeout: float) -> T:
        """The server's answer; `timeout` in seconds."""
        process, world = self._process, self._process.world
        if process.is_aware or not process.alive:
            raise BusDown("it is cut off, and knows it")
        answer: asyncio.Future[T] = self._loop.create_future()
        self._waiting.add(answer)
        timer = self._loop.call_later(timeout, _give_up, answer)
        if not self._is_lost():
            world.at(world.now + self._delay(), partial(self._serve, verb, answer, process.life, world.now))
        try:
            return await answer
        finally:
            timer.cancel()
            self._waiting.discard(answer)

    def _serve(self, verb: Callable[[], T], answer: asyncio.Future[T], life: int, asked_at: float) -> None:
        process = self._process
        if process.name in process.world.cut_off or process.was_buffered(life, asked_at):
            return
        try:
            settle = partial(answer.set_result, verb())
        except BusError as error:
            settle = partial(answer.set_exception, error)
        except WrongRevision as error:
            settle = partial(answer.set_exception, error)
        if process.life == life and not self._is_lost():
            process.later(self._delay(), lambda: None if answer.done() or self._is_cut() else settle())

    def _is_cut(self) -> bool:
        return self._process.name in self._process.world.cut_off

    def _is_lost(self) -> bool:
        world = self._process.world
        return not world.is_calm and world.rng.random() < LOST

    def _delay(self) -> float:
        world = self._process.world
        is_late = not world.is_calm and world.rng.random() < LATE
        return 0.0005 + world.rng.random() * (LATE_S if is_late else 0.003)


class SimBus(Bus):
    """The connection of one life of a process."""

    def __init__(self, process: GatewayProcess, server: StreamServer, loop: SimLoop) -> None:
        self._process = process
        self._loop = loop
        self._asked: dict[str, asyncio.Future[Any]] = {}
        self.streams = self.jetstream = SimJetStream(process, server, loop)
        self.on_reconnect: list[Callable[[], Awaitable[None]]] = []
        self._inbox_subject = f"{OWN}{process.instance}.inbox"
        process.listen(f"{self._inbox_subject}.*", self._on_answer)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    @property
    def connected(self) -> bool:
        return not self._process.is_aware

    def publish_nowait(self, subject: str, message: Any, *, reply: str = "") -> None:
        if self._process.is_aware or not self._process.alive:
            raise BusDown("it is cut off, and knows it")
        self._process.publish(subject, message, reply)

    async def request(self, subject: str, message: Any, timeout: float) -> Any:
        reply = f"{self._inbox_subject}.{self._process.next_number()}"
        answer = self._asked[reply] = self._loop.create_future()
        timer = self._loop.call_later(timeout, _give_up, answer)
        try:
            self.publish_nowait(subject, message, reply=reply)
            return await answer
        finally:
            timer.cancel()
            del self._asked[reply]

    @asynccontextmanager
    async def listening(
        self,
        handlers: Mapping[str, Handler] = {},
        *,
        bells: Mapping[str, Callable[[], None]] = {},
        readers: Mapping[str, Callable[[bytes], Any]] = {},
        reconnected: Callable[[], Awaitable[None]] | None = None,
    ) -> AsyncIterator[None]:
        for subject, handler in handlers.items():
            self._process.listen(subject, handler)
        if reconnected is not None:
            self.on_reconnect.append(reconnected)
        yield

    def disconnect(self) -> None:
        """It is cut off, and knows it."""
        self.streams.disconnect()
        for waits in self._asked.values():
            if not waits.done():
                waits.set_exception(BusDown("The connection is lost."))

    def reconnect(self) -> None:
        """It is there again."""
        for callback in self.on_reconnect:
            self._loop.create_task(_call(callback))

    def _on_answer(self, subject: str, message: object, _: str) -> None:
        if (answer := self._asked.get(subject)) is not None and not answer.done():
            if message is NO_RESPONDERS:
                answer.set_exception(NoResponders("Nobody listens."))
            else:
                answer.set_result(message)


async def _call(callback: Callable[[], Awaitable[None]]) -> None:
    await callback()


def _give_up(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(BusTimeout("No answer came in time."))
