"""Drives the `Home` of this gateway: asks it at the right moments, and carries what it says.

With one gateway, home and origins are one process and a grant is a function call; with several, `on_grant` and
`on_dropped` are where a message to the origin goes instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from pilotlight_core.host.bus import Bus, BusDown, Lease
from pilotlight_core.model import subjects
from pilotlight_core.model.messages import Grant
from pilotlight_gateway.home import Dropped, Home, QueueLimits


class HomeDriver:
    """A home that acts only while its lease is valid and the bus is there."""

    def __init__(
        self,
        bus: Bus,
        lease: Lease,
        *,
        region: str,
        gateway: str,
        limits: QueueLimits,
        on_grant: Callable[[Grant, float], None],
        on_dropped: Callable[[Dropped], None],
    ) -> None:
        self._bus = bus
        self._lease = lease
        self._region = region
        self._gateway = gateway
        self._limits = limits
        self._on_grant = on_grant
        self._on_dropped = on_dropped
        self._home: Home | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pumping = False
        self._again = False
        self._stirred = False
        self._wakes = float("inf")

    @property
    def epoch(self) -> int:
        """Of the home that acts, or acted last; 0 before the first."""
        return self._home.epoch if self._home else 0

    @property
    def home(self) -> Home | None:
        """The home, while it may act."""
        return self._home if self._home is not None and self._lease.valid(time.monotonic()) else None

    def take_over(self) -> None:
        """The lease was acquired: a new home begins, empty; origins and credits tell it what there is."""
        self._home = Home(gateway=self._gateway, epoch=self._lease.epoch, limits=self._limits)

    def stir(self) -> None:
        """Something happened: let the home decide when this turn of the loop is over, once for all that it brought."""
        if not self._stirred:
            self._stirred = True
            asyncio.get_running_loop().call_soon(self.pump)

    def pump(self) -> None:
        """Let the home decide, as often as its decisions cause something new."""
        self._stirred = False
        if self._pumping:
            self._again = True
            return
        self._pumping = True
        try:
            self._again = True
            while self._again:
                self._again = False
                self._turn()
        finally:
            self._pumping = False

    def _turn(self) -> None:
        home, at = self.home, time.monotonic()
        if home is None or not self._bus.connected:
            return
        for dropped in home.expire(at):
            self._on_dropped(dropped)
        for grant in home.grants(at):
            self._on_grant(grant, at)
        try:
            for demand in home.demand(at):
                self._bus.publish_nowait(subjects.demand(self._region, demand.version), demand)
        except BusDown:
            return
        self._wake_at(home.next_wake(), at)

    def _wake_at(self, wake: float | None, at: float) -> None:
        # The loop's clock is time.monotonic, under uvloop too, but in whole milliseconds: a little late is right.
        if wake is None or (self._timer is not None and not self._timer.cancelled() and self._wakes <= wake):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wakes = wake
        self._timer = asyncio.get_running_loop().call_later(max(0.001, wake - at), self._woken)

    def _woken(self) -> None:
        self._timer = None
        self._wakes = float("inf")
        self.pump()

    def stop(self) -> None:
        """No more timers."""
        if self._timer is not None:
            self._timer.cancel()
