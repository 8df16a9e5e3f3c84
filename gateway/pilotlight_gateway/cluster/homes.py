"""The homes that this gateway runs, one per shard that is its own: asked at the right moments, and heard.

What a home says goes to the origin of the call, which is here or at another gateway.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from itertools import islice
from typing import Protocol

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusDown, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.agent_messages import Credit, Grant
from pilotlight_core.model.messages.scheduling import (
    Breakers,
    CreditsWanted,
    Dropped,
    Enqueue,
    HandBack,
    HomeItem,
    HomeState,
    Settle,
    ToHome,
    Withdraw,
)
from pilotlight_core.model.timers import Timers
from pilotlight_gateway.calls.call_failures import dropped_of
from pilotlight_gateway.cluster.outbox import Outbox
from pilotlight_gateway.cluster.shards import STATE_BYTES
from pilotlight_gateway.home.home import Home, HomeStatistics, QueueLimits

BREAKERS_TOLD = 5_000
"""At most, in one message: 500 KiB. They are for people to look at."""
NAMES = tuple(str(shard) for shard in range(subjects.SHARDS))
"""Of shards, as keys of alarms."""

log = structlog.get_logger(__name__)


class HomeOwnership(Protocol):
    """Who is the home of what."""

    def mine(self, shard: int, at: float) -> int | None: ...


class OriginPort(Protocol):
    """The calls of this gateway: what homes say to them, wherever those are."""

    def granted(self, grant: Grant, at: float) -> None: ...

    def dropped(self, dropped: Dropped) -> None: ...


class Homes:
    """Homes that act only while their shard is ours and the bus is there."""

    def __init__(
        self, bus: Bus, origins: OriginPort, mailbox: Outbox, *, region: str, gateway: str, limits: QueueLimits
    ) -> None:
        self._bus = bus
        self._origins = origins
        self._mailbox = mailbox
        self._region = region
        self._gateway = gateway
        self._limits = limits
        self._homes: dict[int, Home] = {}
        self.ownership: HomeOwnership
        """To be set before anything happens: it tells us what to begin, and we ask it what still holds."""
        self._wakes = Timers[str]()
        self._wakes_at = float("inf")
        self._timer: asyncio.TimerHandle | None = None
        self._stirred: set[int] = set()
        self._pumping = False
        self._due = False
        self._wanted = False
        self._broken = False
        """Whether breakers were told of last."""

    # -- which there are -----------------------------------------------------------------------------------------

    def begin(self, shard: int, epoch: int, state: bytes) -> None:
        """The shard is ours: a new home begins, with what the former one left; origins and credits tell it the rest."""
        home = self._homes[shard] = Home(gateway=self._gateway, epoch=epoch, limits=self._limits)
        if state:
            home.restore(msgspec.msgpack.decode(state, type=HomeState), time.monotonic())
        self.stir(shard)
        if not self._wanted:
            self._wanted = True
            self._bus.loop.call_soon(self._want_credits)

    def end(self, shard: int) -> bytes:
        """The shard is not ours any more. Returns what the next home should know."""
        home = self._homes.pop(shard, None)
        self._wakes.clear(NAMES[shard])
        return packed(home.hand_over(time.monotonic()), STATE_BYTES) if home is not None else b""

    def get(self, shard: int, at: float) -> Home | None:
        """The shard's home, while it is here and may act."""
        home = self._homes.get(shard)
        return home if home is not None and self.ownership.mine(shard, at) == home.epoch else None

    def __iter__(self) -> Iterator[Home]:
        """All of them, whether they may act or not."""
        return iter(list(self._homes.values()))

    def __len__(self) -> int:
        return len(self._homes)

    def stop(self) -> None:
        """No more timers."""
        if self._timer is not None:
            self._timer.cancel()

    def statistics(self, at: float) -> list[HomeStatistics]:
        """How each is."""
        return [home.statistics(at) for home in self]

    def tell_breakers(self, at: float) -> None:
        """Every gateway lists the breakers: all are told while there are any, and once after."""
        told = tuple(islice((told for home in self for told in home.breakers(at)), BREAKERS_TOLD))
        if not told and not self._broken:
            return
        self._broken = bool(told)
        with contextlib.suppress(BusDown, MessageTooLarge):
            self._bus.publish_nowait(subjects.breakers(self._region), Breakers(gateway=self._gateway, told=told))

    # -- what they are told --------------------------------------------------------------------------------------

    def tell(self, shard: int, item: HomeItem, at: float) -> None:
        """Something from an origin.

        Raises:
            PilotlightError: the call that was to be queued is refused.
        """
        home = self.get(shard, at)
        if home is None:
            return  # an origin that waits repeats itself, and says it anew to the next home
        match item:
            case Enqueue(call):
                home.enqueue(call, at)
            case Settle():
                home.done(
                    item.call, item.container, item.number, at, cost=item.cost, frees=item.frees, outcome=item.outcome
                )
            case HandBack():
                home.refused(item.call, item.container, item.reason, item.epoch, at)
            case Withdraw(call_id):
                home.cancel(call_id)
        if home.stirred:
            self.stir(shard)

    def settle(self, item: Settle, at: float) -> None:
        """A grant is over, of whichever home here."""
        for home in self:
            home.done(
                item.call, item.container, item.number, at, cost=item.cost, frees=item.frees, outcome=item.outcome
            )
        self.stir_all()

    def on_mail(self, _subject: str, message: object, _reply: str) -> None:
        """Another gateway's origins say something."""
        if not isinstance(message, ToHome):
            return
        at = time.monotonic()
        for item in message.items:
            try:
                self.tell(message.shard, item, at)
            except PilotlightError as error:
                if isinstance(item, Enqueue):
                    self._mailbox.drop(dropped_of(item.call, error))

    def credit(self, credit: Credit, at: float) -> None:
        """A container speaks of its room."""
        shard = subjects.shard_of(credit.function)
        if (home := self.get(shard, at)) is not None:
            home.credit(credit, at)
            self.stir(shard)

    # -- when they are asked -------------------------------------------------------------------------------------

    def stir(self, shard: int) -> None:
        """Something happened: let the home decide when this turn of the loop is over, once for all that it brought."""
        self._stirred.add(shard)
        if not self._due:
            self._due = True
            self._bus.loop.call_soon(self.pump)

    def stir_all(self) -> None:
        """Something happened to all."""
        for shard in self._homes:
            self.stir(shard)

    def pump(self) -> None:
        """Let the homes decide, as often as their decisions cause something new."""
        self._due = False
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._stirred and self._bus.connected:
                shard = self._stirred.pop()
                try:
                    self._turn(shard)
                except Exception:
                    log.exception("a home's turn went wrong; the others go on", shard=shard)
        finally:
            self._pumping = False
        self._wake_at(self._wakes.next())

    def _turn(self, shard: int) -> None:
        at = time.monotonic()
        home = self.get(shard, at)
        if home is None:
            return
        for dropped in home.expire(at):
            if dropped.gateway == self._gateway:
                self._origins.dropped(dropped)
            else:
                self._mailbox.drop(dropped)
        for grant in home.grants(at):
            if grant.gateway == self._gateway:
                self._origins.granted(grant, at)
            else:
                self._mailbox.grant(grant)
        try:
            for demand in home.demand(at):
                self._bus.publish_nowait(subjects.demand(self._region, demand.version), demand)
        except BusDown:
            return
        if (wake := home.next_wake()) is None:
            self._wakes.clear(NAMES[shard])
        elif wake != self._wakes.at(NAMES[shard]):
            self._wakes.set(NAMES[shard], wake)

    def _wake_at(self, wake: float | None) -> None:
        # The loop's clock is time.monotonic, under uvloop too, but in whole milliseconds: a little late is right.
        if wake is None or (self._timer is not None and not self._timer.cancelled() and self._wakes_at <= wake):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_at = wake
        later = max(0.001, wake - time.monotonic())
        self._timer = self._bus.loop.call_later(later, self._woken)

    def _woken(self) -> None:
        self._timer = None
        self._wakes_at = float("inf")
        self._stirred.update(int(shard) for shard in self._wakes.due(time.monotonic()))
        self.pump()

    def _want_credits(self) -> None:
        self._wanted = False
        try:
            self._bus.publish_nowait(subjects.credits_wanted(self._region), CreditsWanted())
        except BusDown:
            log.debug("no credits asked for")  # they are repeated each second anyway


def packed(state: HomeState, room: int) -> bytes:
    """What is handed over, in at most `room` bytes if that can be: first of all the calls that wait."""
    whole = msgspec.msgpack.encode(state)
    if len(whole) <= room or not state.versions:
        return whole
    return msgspec.msgpack.encode(msgspec.structs.replace(state, versions={}))
