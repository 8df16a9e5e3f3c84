"""The port of a driver: sending, a clock, and an alarm.

A driver is a plain object. Its `handlers` get its messages; what they cause inside this process is queued until its
next turn, which comes when the present turn of the event loop is over, or at the instant that the driver asked for. So
no driver is re-entered, and it runs alike over asyncio and NATS (`BusDriverPort`) and in the simulation.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Protocol

import structlog

from pilotlight_core.bus import Bus, Handler
from pilotlight_core.model.messages.message import Message

SOON = float("-inf")
"""The instant of a turn that is due now."""
NEVER = float("inf")
RETRY_S = 0.25
"""After a turn that raised."""
TOGETHER = 8
"""Events that one turn of a driver answers at most while the loop's own turn brings more: what 64 callers asked in one
turn of the loop, answered at its end, would keep agents and guests waiting and then the gateway. As many as go in one
message (`links.link.GROUP`)."""

log = structlog.get_logger(__name__)


class DriverPort(Protocol):
    """What a driver needs of its process."""

    @property
    def connected(self) -> bool:
        """Whether there is a bus."""
        ...

    def send(self, subject: str, message: Message, *, reply: str = "") -> None:
        """Publish. With `reply`, its handler gets NO_RESPONDERS if `subject` has no listener.

        Raises:
            BusDown: while disconnected: nothing was sent.
            MessageTooLarge: if it does not fit.
        """
        ...

    def clock(self) -> float:
        """Monotonic seconds."""
        ...

    def wake_at(self, instant: float) -> None:
        """Give the driver a turn at `instant`, or soon after; the earliest of several instants holds.

        `SOON` within a turn means this turn.
        """
        ...

    def take_turn_if_many(self) -> None:
        """Give the driver its turn now if `TOGETHER` events ask for one.

        Only where nothing of the driver is under way: after a call has begun, after a message was handled.
        """
        ...


class Driver(Protocol):
    """Runs over a port."""

    def handlers(self) -> Mapping[str, Handler]:
        """Subject -> the handler of its messages."""
        ...

    def take_turn(self) -> None:
        """Do all that is queued or due, and ask for the next turn (`DriverPort.wake_at`)."""
        ...

    def reconnected(self) -> None:
        """The bus has come back."""
        ...


class BusDriverPort:
    """The real port of one driver: a bus and its event loop."""

    def __init__(self, bus: Bus, clock: Callable[[], float] = time.monotonic) -> None:
        self._bus = bus
        self._loop = bus.loop
        self.clock = clock
        self.send = bus.publish_nowait
        self._turn: Callable[[], None] | None = None
        """Of the driver, while it runs."""
        self._soon = False
        self._events = 0
        """Since the last turn."""
        self._in_turn = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = NEVER

    @property
    def connected(self) -> bool:
        return self._bus.connected

    def wake_at(self, instant: float) -> None:
        if instant == SOON:
            self._events += 1
            if not self._soon:
                self._soon = True
                self._loop.call_soon(self._take_soon)
        elif instant < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = instant
            # The loop counts in whole milliseconds: a little late is right.
            self._timer = self._loop.call_later(max(0.001, instant - self.clock()), self._take_timed_turn)

    def take_turn_if_many(self) -> None:
        if self._events >= TOGETHER and not self._in_turn:
            self._take_turn()

    def driving(self, driver: Driver) -> Driving:
        """Run the driver within an `async with` block."""
        return Driving(self, self._bus, driver)

    def begin(self, driver: Driver) -> None:
        """The driver has turns from now on."""
        self._turn = driver.take_turn

    def stop(self) -> None:
        """No turn comes any more."""
        self._turn = None
        if self._timer is not None:
            self._timer.cancel()

    def _take_soon(self) -> None:
        if self._soon:  # else `take_turn_if_many` was ahead
            self._take_turn()

    def _take_timed_turn(self) -> None:
        self._timer, self._timer_at = None, NEVER
        if not self._soon:
            self._soon = True
            self._take_turn()

    def _take_turn(self) -> None:
        self._in_turn = True
        try:
            if self._turn is not None:
                self._turn()
        except Exception:
            log.exception("a driver's turn went wrong; it is taken again")
            self.wake_at(self.clock() + RETRY_S)  # the turn may not have asked for the next one
        finally:
            self._soon = self._in_turn = False
            self._events = 0


class Driving:
    """A driver over its port, while its block lasts."""

    def __init__(self, port: BusDriverPort, bus: Bus, driver: Driver) -> None:
        self._port = port
        self._bus = bus
        self._driver = driver
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> None:
        port, driver = self._port, self._driver
        port.begin(driver)
        self._stack.callback(port.stop)
        try:
            await self._stack.enter_async_context(
                self._bus.listening(driver.handlers(), reconnected=self._reconnected)
            )  # fmt: skip
        except BaseException:
            port.stop()
            raise
        port.wake_at(SOON)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def _reconnected(self) -> None:
        self._driver.reconnected()
