"""Asks and ends on their way to other gateways: what comes up in one turn of the event loop is one message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import structlog

from pilotlight_core.bus import Bus, BusDown, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_messages import Message
from pilotlight_core.model.messages.limiting import LimitAsk, LimitEnd, ToLimitHome

AT_ONCE = 512
"""Asks or ends in one message: 50 KiB, and as much for the answer."""

log = structlog.get_logger(__name__)


class LimitOutbox:
    """Letters of one gateway to homes of limits; `unsent` is called with the gateway to which asks could not go."""

    def __init__(self, bus: Bus, region: str, gateway: str, unsent: Callable[[str], None]) -> None:
        self._bus = bus
        self._region = region
        self._gateway = gateway
        self._unsent = unsent
        self._asks: defaultdict[str, list[LimitAsk]] = defaultdict(list)
        self._ends: defaultdict[str, list[LimitEnd]] = defaultdict(list)
        self._due = False

    def ask(self, home: str, ask: LimitAsk) -> None:
        """May this call begin?"""
        self._asks[home].append(ask)
        self._soon()

    def end(self, home: str, end: LimitEnd) -> None:
        """It has ended."""
        self._ends[home].append(end)
        self._soon()

    def send(self, subject: str, message: Message, reply: str = "") -> bool:
        """Send something at once; whether it could be sent."""
        try:
            self._bus.publish_nowait(subject, message, reply=reply)
        except (BusDown, MessageTooLarge) as error:
            log.debug("mail was not sent", subject=subject, error=str(error))
            return False
        return True

    def flush(self) -> None:
        """Send what there is."""
        self._due = False
        asks, ends = self._asks, self._ends
        self._asks, self._ends = defaultdict(list), defaultdict(list)
        for home in asks.keys() | ends.keys():
            self._flush(home, asks[home], ends[home])

    def _flush(self, home: str, asks: list[LimitAsk], ends: list[LimitEnd]) -> None:
        for start in range(0, max(len(asks), len(ends)), AT_ONCE):
            some, ended = tuple(asks[start : start + AT_ONCE]), tuple(ends[start : start + AT_ONCE])
            message = ToLimitHome(gateway=self._gateway, asks=some, ends=ended)
            # Whoever listens nowhere is dead: the bus says so on the subject of answers.
            reply = subjects.allowed(self._region, self._gateway) if some else ""
            if not self.send(subjects.limits(self._region, home), message, reply) and some:
                self._unsent(home)

    def _soon(self) -> None:
        if not self._due:
            self._due = True
            self._bus.loop.call_soon(self.flush)
