"""Reads kept streams, of this gateway or of the one that has them: the call id says which.

Another gateway is asked for the next bytes again and again, each time with a cursor; so it knows that somebody reads,
and neither keeps anything open between two questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol

import structlog

from pilotlight_core.bus import BusError, Handler, Subscription
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import NotFound, Unavailable, UnknownCall
from pilotlight_core.model.ids import parse_call_id, token
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.scheduling import AskEvents, StreamEvents
from pilotlight_gateway.streams.kept_stream import Cursor, KeptStream, ReadBytes
from pilotlight_gateway.streams.stream_keeper import StreamKeeper

PIECE_BYTES = 256 * 1024
"""Of one answer: well below the size of a message of the bus."""
WAIT_S = 2.0
"""How long a question waits for events."""
ANSWER_S = 5.0
"""A gateway that has not answered by then is asked again by the client."""
MOST_ASKED = 1_024
"""Questions of other gateways that wait at a time; each is one reader."""


log = structlog.get_logger(__name__)


class StreamBus(Protocol):
    """What it needs of the bus."""

    async def request(self, subject: str, message: Message, timeout: float) -> Any: ...
    async def publish(self, subject: str, message: Message) -> None: ...
    async def subscribe(self, subject: str, handler: Handler) -> Subscription: ...
    def spawn(self, job: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...


class StreamOwners(Protocol):
    """Which gateway a call id is of."""

    @property
    def newest(self) -> int: ...

    def process_of(self, epoch: int) -> str | None: ...
    def others(self) -> list[str]: ...


class EventSource(Protocol):
    """A stream that is read."""

    resume_s: float

    async def read(self, within_s: float | None = None) -> tuple[bytes, bool]:
        """The next bytes, and whether nothing follows; waits for some, at most so long.

        Raises:
            PilotlightError: it cannot be read.
        """
        ...

    def close(self) -> None:
        """It is read no more."""
        ...


class LocalSource:
    """A stream of this gateway. `after`: the last event that the reader has."""

    def __init__(self, stream: KeptStream, after: int) -> None:
        self.resume_s = stream.resume_s
        self._stream = stream
        self._reader = token()
        self._cursor = stream.attach(self._reader, after)

    async def read(self, within_s: float | None = None) -> tuple[bytes, bool]:
        found = await self._stream.read(self._reader, self._cursor, PIECE_BYTES, within_s)
        self._cursor = found.cursor
        return found.data, found.is_over

    def close(self) -> None:
        self._stream.leave(self._reader)


class RemoteSource:
    """A stream of another gateway."""

    def __init__(self, bus: StreamBus, subject: str, asked: AskEvents) -> None:
        self.resume_s = 0.0
        self._bus = bus
        self._subject = subject
        self._asked = asked

    async def read(self, within_s: float | None = None) -> tuple[bytes, bool]:  # noqa: ARG002 - the other waits
        asked = self._asked
        try:
            answer = await self._bus.request(self._subject, asked, timeout=ANSWER_S)
        except BusError:
            answer = None
        if not isinstance(answer, StreamEvents):
            raise Unavailable(f"The gateway that has call {asked.call_id} does not answer.", retry_after=1.0)
        if not answer.known:
            raise _unknown(asked.call_id)
        if answer.gone:
            raise NotFound(answer.gone, code="events_gone")
        self.resume_s = answer.resume_s
        self._asked = AskEvents(
            tenant=asked.tenant, call_id=asked.call_id, reader=asked.reader, place=answer.place, offset=answer.offset
        )
        return answer.data, answer.is_over

    def close(self) -> None:
        pass  # it is asked no more, which the other gateway notices


class StreamExchange:
    """Answers other gateways while `running` is open."""

    def __init__(
        self, bus: StreamBus, keeper: StreamKeeper, owners: StreamOwners, *, region: str, gateway: str
    ) -> None:
        self._bus = bus
        self.keeper = keeper
        self._owners = owners
        self._region = region
        self._gateway = gateway
        self._waiting = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer until the block ends; what waits by then is told soon, or ends with the bus."""
        heard = await self._bus.subscribe(subjects.events(self._region, self._gateway), self.receive)
        try:
            yield
        finally:
            await heard.unsubscribe()

    def open(self, tenant: str, call_id: str, after: int) -> EventSource:
        """A tenant's stream, behind the event `after`.

        Raises:
            UnknownCall: there is none that can be read; `call_lost` if its gateway is gone.
            NotFound: `events_gone`.
        """
        if (stream := self.keeper.find(tenant, call_id)) is not None:
            return LocalSource(stream, after)
        epoch, owners = parse_call_id(call_id).epoch, self._owners
        owner = owners.process_of(epoch)
        if owner is None and epoch <= owners.newest:
            raise UnknownCall(f"The gateway that had call {call_id} is gone, and the call with it.", code="call_lost")
        if owner is None or owner not in owners.others():
            raise _unknown(call_id)
        asked = AskEvents(tenant=tenant, call_id=call_id, reader=token(), after=after)
        return RemoteSource(self._bus, subjects.events(self._region, owner), asked)

    def receive(self, _subject: str, message: Any, reply: str) -> None:
        """Another gateway asks."""
        if isinstance(message, AskEvents) and self._waiting < MOST_ASKED:
            self._waiting += 1
            self._bus.spawn(self._answer(message, reply))

    async def _answer(self, asked: AskEvents, reply: str) -> None:
        try:
            await self._bus.publish(reply, await self._events(asked))
        except BusError:
            pass  # it asks again
        except Exception:
            log.exception("what another gateway asked of a stream went wrong; others go on", call=asked.call_id)
        finally:
            self._waiting -= 1

    async def _events(self, asked: AskEvents) -> StreamEvents:
        stream = self.keeper.find(asked.tenant, asked.call_id)
        if stream is None:
            return StreamEvents(known=False)
        cursor = Cursor(asked.place, asked.offset)
        if asked.place < 0:
            try:
                cursor = stream.attach(asked.reader, asked.after)
            except NotFound as error:
                return StreamEvents(gone=error.detail)
        found: ReadBytes = await stream.read(asked.reader, cursor, PIECE_BYTES, WAIT_S)
        stream.leave(asked.reader)
        return StreamEvents(
            data=found.data, place=found.cursor.place, offset=found.cursor.offset, is_over=found.is_over,
            resume_s=stream.resume_s,
        )  # fmt: skip


def _unknown(call_id: str) -> UnknownCall:
    return UnknownCall(f"There is no stream of a call {call_id} that can be read again.")
