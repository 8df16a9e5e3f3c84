"""Asks and ends for homes at other gateways: those of one turn travel in one message."""

from __future__ import annotations

from collections import defaultdict

import structlog

from pilotlight_core.bus import BusDown, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.limiting import LimitAsk, LimitEnd, ToLimitHome
from pilotlight_core.model.messages.message import Message
from pilotlight_gateway.cluster.driver_port import SOON, DriverPort

AT_ONCE = 512
"""Asks or ends in one message: 50 KiB, and as much for the answer."""

log = structlog.get_logger(__name__)


class LimitOutbox:
    def __init__(self, port: DriverPort, region: str, gateway: str) -> None:
        self._port = port
        self._region = region
        self._gateway = gateway
        self._asks: defaultdict[str, list[LimitAsk]] = defaultdict(list)
        self._ends: defaultdict[str, list[LimitEnd]] = defaultdict(list)

    def ask(self, home: str, ask: LimitAsk) -> None:
        self._asks[home].append(ask)
        self._port.wake_at(SOON)

    def end(self, home: str, end: LimitEnd) -> None:
        self._ends[home].append(end)
        self._port.wake_at(SOON)

    def send(self, subject: str, message: Message, reply: str = "") -> bool:
        try:
            self._port.send(subject, message, reply=reply)
        except (BusDown, MessageTooLarge) as error:
            log.debug("a message was not sent", subject=subject, error=str(error))
            return False
        return True

    def flush(self) -> list[str]:
        """Send everything; returns the homes to which asks could not be sent."""
        if not self._asks and not self._ends:
            return []
        asks, ends = self._asks, self._ends
        self._asks, self._ends = defaultdict(list), defaultdict(list)
        return [home for home in sorted(asks.keys() | ends.keys()) if not self._flush(home, asks[home], ends[home])]

    def _flush(self, home: str, asks: list[LimitAsk], ends: list[LimitEnd]) -> bool:
        went = True
        for start in range(0, max(len(asks), len(ends)), AT_ONCE):
            some, ended = tuple(asks[start : start + AT_ONCE]), tuple(ends[start : start + AT_ONCE])
            message = ToLimitHome(gateway=self._gateway, asks=some, ends=ended)
            # If no process listens, the bus replies NO_RESPONDERS on the subject of answers.
            reply = subjects.allowed(self._region, self._gateway) if some else ""
            went = (self.send(subjects.limits(self._region, home), message, reply) or not some) and went
        return went
