"""Frames to the gateways that hold the callers, and what to do when one of them does not listen.

A last frame that could not be delivered is kept for a while and sent again: the gateway, or the bus, may be back in a
moment, and the caller still waits there. A gateway that stays away is reported, so that its calls are cancelled.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pilotlight_core.bus import NO_RESPONDERS, BusError
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_messages import CallFrame, Ended, Message, Refused, Started

DELIVERED_S = 2.0
"""No complaint for so long: it arrived."""
KEEP_S = 10.0
"""How long an undelivered last frame is offered again."""
KEEP_BYTES = 64 * 2**20
"""Of last frames in all; beyond it the oldest are given up."""
RETRY_S = 0.5
VANISHED_S = 3.0
"""A gateway where nobody has listened for so long is gone."""
FRAME_BYTES = 256
"""What a frame takes besides its output."""


class Publisher(Protocol):
    """The one verb that is needed of the bus."""

    def publish_nowait(self, subject: str, message: Message, *, reply: str = "") -> None:
        """Send a message; raises BusError when it was not sent."""


@dataclass(kw_only=True, slots=True)
class _Last:
    gateway: str
    frame: Ended | Refused
    size: int
    born: float
    sent: float


@dataclass(kw_only=True, slots=True)
class _Silence:
    since: float
    heard: float
    """When the bus last said that nobody listens there."""
    probed: float = 0.0


class OriginSender:
    """`complaints` is the subject under which the bus says that nobody listens; `vanished` gets a gateway's name."""

    def __init__(
        self,
        bus: Publisher,
        region: str,
        complaints: str,
        *,
        clock: Callable[[], float],
        vanished: Callable[[str], None],
    ) -> None:
        self._bus = bus
        self._complaints = complaints
        self._clock = clock
        self._vanished = vanished
        self._region = region
        self._routes: dict[str, tuple[str, str]] = {}
        self._last: OrderedDict[str, _Last] = OrderedDict()  # in the order in which they were sent
        self._lost: OrderedDict[str, _Last] = OrderedDict()  # of which it is known that nobody heard them
        self._bytes = 0
        self._silent: dict[str, _Silence] = {}

    @property
    def subject(self) -> str:
        """What to subscribe with `on_notice`."""
        return f"{self._complaints}.>"

    def tell(self, gateway: str, frame: CallFrame) -> None:
        """Send a frame; one that cannot be sent now is lost, unless it is the last of its call."""
        if isinstance(frame, Ended | Refused):
            self._keep(gateway, frame)
            return
        subject, complain = self._route(gateway)
        # What is lost here the origin misses: its stream has a gap, or its call's last frame says more.
        with contextlib.suppress(BusError):
            self._bus.publish_nowait(subject, frame, reply=complain + "-")

    def repeat(self, call: str, grant: int) -> bool:
        """Send a call's last frame once more; False if it is not kept any more."""
        last = self._last.get(call) or self._lost.get(call)
        if last is None or last.frame.grant != grant:
            return False
        self._last.pop(call, None)
        self._lost.pop(call, None)
        self._send(call, last)
        return True

    def on_notice(self, subject: str, message: Any, _reply: str) -> None:
        """The bus says that nobody listened; `subject` names the gateway and the call."""
        if message is not NO_RESPONDERS:
            return
        gateway, _, call = subject.removeprefix(f"{self._complaints}.").partition(".")
        at = self._clock()
        silence = self._silent.setdefault(gateway, _Silence(since=at, heard=at))
        silence.heard = at
        if (last := self._last.pop(call, None)) is not None:
            self._lost[call] = last

    def sweep(self, at: float) -> None:
        """Every half second: forget what has arrived, offer again what has not, and ask who is still away."""
        while self._last and at - next(iter(self._last.values())).sent > DELIVERED_S:
            self._forget(next(iter(self._last)))
        lost, self._lost = self._lost, OrderedDict()
        for call, last in lost.items():
            if at - last.born > KEEP_S:
                self._bytes -= last.size
            else:
                self._send(call, last)
        for gateway, silence in list(self._silent.items()):
            if silence.probed and silence.heard < silence.probed:
                del self._silent[gateway]
            elif at - silence.since > VANISHED_S:
                del self._silent[gateway]
                self._vanished(gateway)
            else:
                self._probe(gateway, silence, at)

    def _keep(self, gateway: str, frame: Ended | Refused) -> None:
        self._forget(frame.call)
        size = FRAME_BYTES + (len(frame.output) if isinstance(frame, Ended) else 0)
        at = self._clock()
        self._bytes += size
        while self._bytes > KEEP_BYTES and (oldest := next(iter(self._last or self._lost), "")):
            self._forget(oldest)
        self._send(frame.call, _Last(gateway=gateway, frame=frame, size=size, born=at, sent=at))

    def _send(self, call: str, last: _Last) -> None:
        subject, complain = self._route(last.gateway)
        last.sent = self._clock()
        try:
            self._bus.publish_nowait(subject, last.frame, reply=complain + call)
            self._last[call] = last
        except BusError:
            self._lost[call] = last

    def _probe(self, gateway: str, silence: _Silence, at: float) -> None:
        subject, complain = self._route(gateway)
        try:
            self._bus.publish_nowait(subject, Started(call="", grant=0), reply=complain + "-")
            silence.probed = at
        except BusError:
            silence.since = at  # we are away ourselves: that says nothing of the gateway

    def _forget(self, call: str) -> None:
        if (last := self._last.pop(call, None) or self._lost.pop(call, None)) is not None:
            self._bytes -= last.size

    def _route(self, gateway: str) -> tuple[str, str]:
        route = self._routes.get(gateway)
        if route is None:
            route = (subjects.reply(self._region, gateway), f"{self._complaints}.{gateway}.")
            self._routes[gateway] = route
        return route
