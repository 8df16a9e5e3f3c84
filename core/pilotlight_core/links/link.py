"""One end of a link.

The wire is a row of frames: the length as a big-endian u32, then msgpack of `[heard, messages]`. A frame is a *group*:
the messages that were sent together, in order. `heard` counts the groups that the sender of the frame has handled of
the other end, so each end knows what may be lost when the link breaks: `unheard`.

A group leaves as soon as it has `GROUP` messages, or at the end of the turn of the loop. Whole turns in one group would
put all callers in step: gateway, agent and guest would wait for each other while cores are idle.

The first group of an end is its greeting, and is small. A long row of small groups is read in turns with everything
else.

An end may `hold` the link: it reads nothing until it is released, and the kernel's buffers push back on the other end.
Whatever is wrong with a link (a bad frame, too many unsent bytes, silence) ends it: it is closed, and its owner goes on
over the bus.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Annotated, Any, Protocol, cast

import msgspec
import structlog
from msgspec import Meta

from pilotlight_core.model.messages.call_messages import (
    Cancel,
    Chunk,
    ChunkGroup,
    Ended,
    Reconcile,
    Refused,
    Run,
    Started,
    StreamCheckpoint,
    Window,
)
from pilotlight_core.model.messages.link_messages import LinkHello
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.node_messages import Credit
from pilotlight_core.model.messages.scheduling import ToHome, ToOrigin

GROUP = 8
"""Messages that leave together at most. Smaller groups cost writes and wake-ups, larger ones idle cores: with 64
callers whole turns brought a fifth fewer calls than eight at equal CPU."""
MOST_OF_GROUP = 64
"""That are read: who sends more at once has us handle them all before anybody else's."""
FRAME_BYTES = 16 * 2**20
"""Of one frame: eight of the largest messages that the bus takes fit twice."""
GREETING_BYTES = 4_096
"""Of the first frame."""
GROUPS_AT_ONCE = 256
"""That are read before others have their turn: as many full ones as one reading of a socket brings."""
UNSENT_BYTES = 64 * 2**20
"""Of one link; as of the bus."""
HEARD_EVERY = 64
"""Groups that are handled before the other end hears of it, if there is nothing to send to it."""
SILENT_TICKS = 5
"""The other end sends something with each of its ticks; after so many of ours without anything it is gone."""
PATIENT_TICKS = 2
"""How long the other end may take to greet, and the owner to release a link that it holds."""

HEADER = struct.Struct(">I")
TO_AGENT: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(
    tuple[int, Annotated[list[LinkHello | Run | Cancel | Window | Reconcile], Meta(max_length=MOST_OF_GROUP)]]
)
TO_GATEWAY: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(
    tuple[
        int,
        Annotated[
            list[LinkHello | Refused | Started | Chunk | ChunkGroup | StreamCheckpoint | Ended | Credit],
            Meta(max_length=MOST_OF_GROUP),
        ],
    ]
)
TO_PEER: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(
    tuple[int, Annotated[list[LinkHello | ToHome | ToOrigin], Meta(max_length=MOST_OF_GROUP)]]
)
"""The closed families of what goes over a link, by direction."""
_encoder = msgspec.msgpack.Encoder()

log = structlog.get_logger(__name__)


class LinkPort(Protocol):
    """What the two sides need of an end; the simulation has its own."""

    def send(self, message: Message) -> None:
        """Send soon, in order. Nothing is raised: what is not `unheard` when the link is closed has arrived."""
        ...

    def flush(self) -> None:
        """Send what is due now."""
        ...

    def hold(self) -> None:
        """Read nothing more until `release`."""
        ...

    def release(self) -> None:
        """Read what was held."""
        ...

    def tick(self) -> None:
        """Say that this end is there, and end the link if the other end is not, or is not released or greeted."""
        ...

    def close(self, reason: str) -> None:
        """End the link at once; its owner's `closed` follows within this call."""
        ...

    def unheard(self) -> list[Message]:
        """The messages of which the other end has not said that it handled them, in order."""
        ...


class LinkOwner(Protocol):
    """Has links. No method waits."""

    def opened(self, link: LinkPort) -> None:
        """The connection is there."""
        ...

    def received(self, link: LinkPort, messages: list[Any]) -> None:
        """A group has come. The first one has the greeting of the other end and nothing else."""
        ...

    def closed(self, link: LinkPort) -> None:
        """The link has ended, once."""
        ...


class Link:
    """One end, over any stream of bytes: an `asyncio.Protocol`. Its `owner` calls `tick` each second."""

    def __init__(
        self,
        owner: LinkOwner,
        decoder: msgspec.msgpack.Decoder[Any],
        loop: asyncio.AbstractEventLoop,
        *,
        keeps_unheard: bool = False,
        admits: Callable[[asyncio.BaseTransport], bool] | None = None,
    ) -> None:
        """`admits` says whether the other end of a connection may link; None: whoever it is."""
        self._owner = owner
        self._decoder = decoder
        self._loop = loop
        self._keeps_unheard = keeps_unheard
        self._admits = admits
        self._transport: asyncio.Transport | None = None
        self._due: list[Message] = []
        self._flush_due = False
        self._sent = 0
        """Groups."""
        self._unheard: deque[tuple[int, list[Message]]] = deque()
        """Groups by number."""
        self._received = 0
        self._confirmed = 0
        """Of the groups received, those that the other end was told of."""
        self._parts: list[bytes] = []
        self._missing = 0
        """Bytes until the parts are worth another look."""
        self._held = False
        self._rests = False
        """Others have their turn before the next group is read."""
        self._quiet = 0
        """Ticks since the last group, or since the link is held."""
        self.messages_out = 0
        self.frames_out = 0

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    # -- sending -------------------------------------------------------------------------------------------------

    def send(self, message: Message) -> None:
        """See `LinkPort`."""
        due = self._due
        due.append(message)
        if len(due) >= GROUP:
            self.flush()
        elif not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush_soon)

    def flush(self) -> None:
        """Send what is due now."""
        if self._due:
            due, self._due = self._due, []
            self._write(due)

    def unheard(self) -> list[Message]:
        """See `LinkPort`."""
        return [message for _, group in self._unheard for message in group] + self._due

    def _flush_soon(self) -> None:
        self._flush_due = False
        self.flush()

    def _write(self, group: list[Message]) -> None:
        transport = self._transport
        if transport is None:
            self._due = group + self._due  # they stay unheard
            return
        payload = _encoder.encode((self._received, group))
        if len(payload) > FRAME_BYTES:
            self._write_apart(group)
            return
        self._sent += 1
        self._confirmed = self._received
        self.messages_out += len(group)
        self.frames_out += 1
        if self._keeps_unheard and group:
            self._unheard.append((self._sent, group))
        transport.write(HEADER.pack(len(payload)) + payload)
        if transport.get_write_buffer_size() > UNSENT_BYTES:
            self.close("the other end reads too slowly")

    def _write_apart(self, group: list[Message]) -> None:
        if len(group) > 1:
            for message in group:
                self._write([message])
        else:
            log.error("a message is too large for a link", kind=type(group[0]).__name__)

    # -- receiving -----------------------------------------------------------------------------------------------

    def hold(self) -> None:
        """See `LinkPort`."""
        if self._transport is not None and not self._held:
            self._held, self._quiet = True, 0
            self._transport.pause_reading()

    def release(self) -> None:
        """See `LinkPort`."""
        if self._transport is not None and self._held:
            self._held, self._quiet = False, 0
            self._read_on()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`, as the next ones."""
        self._parts.append(data)
        self._missing -= len(data)
        if self._missing <= 0 and not self._held and not self._rests:
            self._read()

    def _read_on(self) -> None:
        if self._transport is not None and not self._held and not self._rests:
            self._transport.resume_reading()
            self._read()

    def _rest(self) -> None:
        self._rests = True
        if self._transport is not None:
            self._transport.pause_reading()
        self._loop.call_soon(self._rested)

    def _rested(self) -> None:
        self._rests = False
        self._read_on()

    def _read(self) -> None:
        """Handle the groups that are complete, up to as many as are read at once."""
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._missing = [], 0
        at, end, left = 0, len(data), GROUPS_AT_ONCE
        while end - at >= HEADER.size and not self._held and self._transport is not None:
            (size,) = HEADER.unpack_from(data, at)
            if size > (FRAME_BYTES if self._received else GREETING_BYTES):
                self.close("a frame is too large")
                return
            if end - at - HEADER.size < size:
                self._missing = size + HEADER.size - (end - at)
                break
            if not left:
                self._rest()
                break
            left -= 1
            at += HEADER.size + size
            self._handle(data[at - size : at])
        if at < end:
            self._parts.insert(0, data[at:] if at else data)

    def _handle(self, payload: bytes) -> None:
        try:
            heard, messages = self._decoder.decode(payload)
        except msgspec.DecodeError as error:
            self.close(f"a bad frame: {error}")
            return
        if heard > self._sent or heard < 0:
            self.close("the other end has heard what was never sent")
            return
        if not messages and not self._received:
            self.close("it does not greet")
            return
        unheard = self._unheard
        while unheard and unheard[0][0] <= heard:
            unheard.popleft()
        self._quiet = 0
        if messages:
            try:
                self._owner.received(self, messages)
            except Exception:
                log.exception("what came over a link went wrong")
        self._received += 1
        if self._received - self._confirmed >= HEARD_EVERY:
            self._write([])

    # -- its life ------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._admits is not None and not self._admits(transport):
            transport.close()
            return
        self._transport = cast("asyncio.Transport", transport)
        self._owner.opened(self)

    def eof_received(self) -> bool:
        return False  # the transport closes itself

    def pause_writing(self) -> None:
        """Nothing: `UNSENT_BYTES` bounds what is unsent."""

    def resume_writing(self) -> None:
        """Nothing, likewise."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._over(str(exc) if exc is not None else "the other end has closed it")

    def tick(self) -> None:
        """See `LinkPort`."""
        self._quiet += 1
        greeted = self._received > 0
        if self._quiet > (PATIENT_TICKS if self._held or not greeted else SILENT_TICKS):
            self.close("it was held for too long" if self._held else "the other end is silent")
        elif greeted:
            self.flush()
            self._write([])

    def close(self, reason: str) -> None:
        """See `LinkPort`."""
        if self._transport is not None:
            self._transport.abort()
            self._over(reason)

    def _over(self, reason: str) -> None:
        if self._transport is not None:
            self._transport = None
            log.info("a link has ended", reason=reason)
            self._owner.closed(self)
