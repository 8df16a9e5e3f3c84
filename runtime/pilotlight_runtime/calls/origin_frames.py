"""Frames to the gateways that hold the callers: over the link of a gateway that has one, else over the bus.

Chunks that went over the bus are kept until their gateway has passed them on, for those that a server of it loses as it
ends. A last frame is kept for KEEP_S. One that nobody heard is sent again, since gateway or bus may be back soon. One
that the bus took may be lost all the same, in what a server still held for a connection that it then closed: it is
sent again when its gateway asks.
"""

from __future__ import annotations

import contextlib
import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pilotlight_core.bus import NO_RESPONDERS, BusError
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.call_messages import (
    CallFrame,
    Chunk,
    ChunkGroup,
    ChunkRow,
    Ended,
    Refused,
    Started,
    StreamCheckpoint,
)
from pilotlight_core.model.messages.message import Message
from pilotlight_runtime.calls.chunk_groups import GROUP_BYTES, GroupDraft, SentChunks
from pilotlight_runtime.calls.gateway_links import GatewayLinks, Publisher
from pilotlight_runtime.calls.slot_table import AcceptedCall

KEEP_S = 20.0
"""A server closes the connection of a gateway that stands still after six to eight seconds (`ping_max`), and what it
held is lost; a gateway asks within two of going on. So standstills of up to 17 seconds lose no last frame."""
KEEP_BYTES = 64 * 2**20
"""Of all kept last frames; the oldest are dropped beyond."""
RETRY_S = 0.5
VANISHED_S = 3.0
"""A gateway that has not listened for so long is gone."""
FRAME_BYTES = 1_024
"""Of a frame besides its output and its texts."""


@dataclass(kw_only=True, slots=True)
class _Last:
    gateway: str
    frame: Ended | Refused
    size: int
    first_sent_at: float
    sent_at: float


@dataclass(kw_only=True, slots=True)
class _Silence:
    since_at: float
    noticed_at: float
    """When the bus last reported it."""
    probed_at: float = 0.0


class OriginSender:
    """Sends frames to origins. The bus reports unheard frames below the subject `notices`."""

    def __init__(
        self,
        bus: Publisher,
        links: GatewayLinks,
        notices: str,
        *,
        region: str,
        node: str,
        clock: Callable[[], float],
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        """`call_soon` calls what it gets at the end of the loop's turn."""
        self._bus = bus
        self._call_soon = call_soon
        self._links = links
        links.resend = self._resend_all
        self._notices = notices
        self._clock = clock
        self._region = region
        self._node = node
        self._routes: dict[str, tuple[str, str]] = {}
        self._last: OrderedDict[str, _Last] = OrderedDict()  # in the order in which they were sent
        self._lost: OrderedDict[str, _Last] = OrderedDict()  # reported as unheard
        self._bytes = 0
        self._silent: dict[str, _Silence] = {}
        self._groups: dict[str, GroupDraft] = {}
        """Chunks that wait for the end of the turn, by gateway."""
        self._chunks = SentChunks()

    @property
    def subject(self) -> str:
        return f"{self._notices}.>"

    def send(self, gateway: str, frame: CallFrame) -> None:
        """Send a frame; one that cannot be sent is lost, unless it is the last of its call."""
        if self._groups and (group := self._groups.get(gateway)) is not None and group.has(frame.call_id):
            self._send_group(gateway)
        if isinstance(frame, Ended | Refused):
            self._send_last(gateway, frame)
        elif not self._links.send(gateway, frame):
            self._publish_passing(gateway, frame)

    def send_chunks(self, call: AcceptedCall, seq: int, data: tuple[bytes, ...]) -> None:
        """Send chunks of a call, with others of this turn if its gateway reads them so."""
        gateway = call.gateway
        if not call.groups or len(data[0]) >= GROUP_BYTES:  # a large one came alone
            for number, each in enumerate(data, seq):
                self.send(gateway, Chunk(call_id=call.call_id, grant_number=call.grant_number, seq=number, data=each))
            return
        group = self._groups.get(gateway)
        if group is None:
            if not self._groups:
                self._call_soon(self._send_groups)
            group = self._groups[gateway] = GroupDraft()
        if group.add(call.call_id, call.grant_number, seq, data):
            self._send_draft(gateway, group)

    def _send_groups(self) -> None:
        for gateway in list(self._groups):
            self._send_group(gateway)
            self._links.flush(gateway)

    def _send_group(self, gateway: str) -> None:
        if (group := self._groups.pop(gateway, None)) is not None:
            self._send_draft(gateway, group)

    def _send_draft(self, gateway: str, group: GroupDraft) -> None:
        message = group.take()
        if message is not None and not self._links.send(gateway, message):
            self._publish_passing(gateway, message)

    def _publish_passing(self, gateway: str, frame: CallFrame | ChunkGroup) -> None:
        if isinstance(frame, ChunkGroup):
            for row in frame.rows:
                self._chunks.keep(gateway, row, self._clock())
        elif isinstance(frame, Chunk):
            row = ChunkRow(frame.call_id, frame.grant_number, frame.seq, (frame.data,))
            self._chunks.keep(gateway, row, self._clock())
        self._publish_once(gateway, frame)

    def on_window(self, call_id: str, upto: int, *, again: bool) -> None:
        """A gateway has passed on a stream's chunks up to `upto`; whether what followed was lost on its way to it."""
        self._chunks.passed_on(call_id, upto)
        if not again:
            return
        gateway, rows = self._chunks.behind(call_id, upto)
        for row in rows:
            message: Chunk | ChunkGroup = ChunkGroup(rows=(row,))
            if len(row.data) == 1:  # as to a gateway that reads no groups
                message = Chunk(call_id=call_id, grant_number=row.grant_number, seq=row.seq, data=row.data[0])
            if not self._links.send(gateway, message):
                self._publish_once(gateway, message)
        if (last := self._last.get(call_id) or self._lost.get(call_id)) is not None:
            self.resend(call_id, last.frame.grant_number)

    def _publish_once(self, gateway: str, frame: CallFrame | ChunkGroup) -> None:
        subject, notice = self._route(gateway)
        # The origin notices the loss: its stream has a gap, or the call's last frame supersedes the lost one.
        with contextlib.suppress(BusError):
            self._bus.publish_nowait(subject, frame, reply=notice + "-")

    def resend(self, call_id: str, grant_number: int) -> bool:
        """Send a call's last frame again; False if it is not kept any more."""
        last = self._last.get(call_id) or self._lost.get(call_id)
        if last is None or last.frame.grant_number != grant_number:
            return False
        self._last.pop(call_id, None)
        self._lost.pop(call_id, None)
        self._publish(call_id, last)
        return True

    def on_notice(self, subject: str, message: Any, _reply: str) -> None:
        """The bus reports an unheard frame; `subject` names the gateway and the call."""
        if message is not NO_RESPONDERS:
            return
        gateway, _, call_id = subject.removeprefix(f"{self._notices}.").partition(".")
        at = self._clock()
        silence = self._silent.setdefault(gateway, _Silence(since_at=at, noticed_at=at))
        silence.noticed_at = at
        if (last := self._last.pop(call_id, None)) is not None:
            self._lost[call_id] = last

    def sweep(self, at: float) -> list[str]:
        """Forget old last frames, send unheard ones again, probe silent gateways; called every RETRY_S.

        Returns the gateways that are gone.
        """
        while self._last and at - next(iter(self._last.values())).sent_at > KEEP_S:
            self._forget(next(iter(self._last)))
        lost, self._lost = self._lost, OrderedDict()
        for call_id, last in lost.items():
            if at - last.first_sent_at > KEEP_S:
                self._bytes -= last.size
            else:
                self._publish(call_id, last)
        self._chunks.sweep(at)
        gone = []
        for gateway, silence in list(self._silent.items()):
            if silence.probed_at and silence.noticed_at < silence.probed_at:
                del self._silent[gateway]
            elif at - silence.since_at > VANISHED_S:
                del self._silent[gateway]
                gone.append(gateway)
            else:
                self._probe(gateway, silence, at)
        return gone

    def _send_last(self, gateway: str, frame: Ended | Refused) -> None:
        self._forget(frame.call_id)
        size = _bytes_of(frame)
        at = self._clock()
        self._bytes += size
        while self._bytes > KEEP_BYTES and (oldest := next(iter(self._last or self._lost), "")):
            self._forget(oldest)
        self._publish(frame.call_id, _Last(gateway=gateway, frame=frame, size=size, first_sent_at=at, sent_at=at))

    def _resend_all(self, gateway: str, messages: list[Message]) -> None:
        """The gateway's link has ended, and these may be lost; frames alone are worth telling again."""
        for message in messages:
            if isinstance(message, Started | Chunk | ChunkGroup | StreamCheckpoint):
                self._publish_passing(gateway, message)
            elif isinstance(message, Ended | Refused):
                self.resend(message.call_id, message.grant_number)

    def _publish(self, call_id: str, last: _Last) -> None:
        last.sent_at = self._clock()
        if self._links.send(last.gateway, last.frame):
            self._last[call_id] = last
            return
        subject, notice = self._route(last.gateway)
        try:
            self._bus.publish_nowait(subject, last.frame, reply=notice + call_id)
            self._last[call_id] = last
        except BusError:
            self._lost[call_id] = last

    def _probe(self, gateway: str, silence: _Silence, at: float) -> None:
        subject, notice = self._route(gateway)
        try:
            self._bus.publish_nowait(subject, Started(call_id="", grant_number=0), reply=notice + "-")
            silence.probed_at = at
        except BusError:
            silence.since_at = at  # this node is cut off itself, which does not count against the gateway

    def _forget(self, call_id: str) -> None:
        if (last := self._last.pop(call_id, None) or self._lost.pop(call_id, None)) is not None:
            self._bytes -= last.size

    def _route(self, gateway: str) -> tuple[str, str]:
        route = self._routes.get(gateway)
        if route is None:
            route = (subjects.reply(self._region, gateway, self._node), f"{self._notices}.{gateway}.")
            self._routes[gateway] = route
        return route


def _bytes_of(frame: Ended | Refused) -> int:
    """What a frame takes in memory."""
    if isinstance(frame, Refused):
        return FRAME_BYTES
    error = frame.error
    texts = (frame.reason,) if error is None else (frame.reason, error.type, error.message, error.traceback)
    return FRAME_BYTES + len(frame.output) + sum(map(sys.getsizeof, texts))
