"""The driver of the home side: one `Home` per shard that is ours, told what origins and nodes say, asked in each turn.

What comes for a home waits in an inbox until the turn (`Router`), and what homes say goes out through the router, to
origins here and elsewhere alike.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from itertools import islice

import msgspec
import structlog

from pilotlight_core.bus import BusDown, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.agent_messages import CallDescriptor, Credit, Shortage
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
from pilotlight_gateway.cluster.driver_port import SOON, DriverPort
from pilotlight_gateway.cluster.node_incarnations import GoneNode
from pilotlight_gateway.cluster.router import Router
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership
from pilotlight_gateway.cluster.shards import STATE_BYTES
from pilotlight_gateway.home.home import Home, HomeStatistics, QueueLimits
from pilotlight_gateway.home.slow_log import SlowLog

BREAKERS_AT_MOST = 5_000
"""At most, in one message: 500 KiB. They are for people to look at."""
WATCH_S = 0.5
"""How often people are told of breakers and of slow flows."""
NAMES = tuple(str(shard) for shard in range(subjects.SHARDS))
"""Of shards, as keys of alarms."""

log = structlog.get_logger(__name__)


class Homes:
    """Homes that act only while their shard is ours and the bus is there."""

    def __init__(
        self,
        port: DriverPort,
        ownership: ShardOwnership,
        router: Router,
        inbox: deque[tuple[int | None, HomeItem]],
        *,
        region: str,
        gateway: str,
        limits: QueueLimits,
    ) -> None:
        self._port = port
        self._ownership = ownership
        self._router = router
        self._inbox = inbox
        self._region = region
        self._gateway = gateway
        self._limits = limits
        self._homes: dict[int, Home] = {}
        self._wakes = Timers[str]()
        self._awake: set[int] = set()
        """The shards whose homes have something to decide."""
        self._wants_credits = False
        self._watch_at = float("-inf")
        self._broken = False
        """Whether breakers were told of last."""
        self._slow_log = SlowLog()

    # -- which there are -----------------------------------------------------------------------------------------

    def begin(self, shard: int, epoch: int, state: bytes) -> None:
        """The shard is ours: a new home begins, with what the former one left; origins and credits tell it the rest."""
        home = self._homes[shard] = Home(gateway=self._gateway, epoch=epoch, limits=self._limits)
        if state:
            home.restore(msgspec.msgpack.decode(state, type=HomeState), self._port.clock())
        self._wants_credits = True
        self.wake(shard)

    def end(self, shard: int) -> bytes:
        """The shard is not ours any more. Returns what the next home should know."""
        home = self._homes.pop(shard, None)
        self._wakes.clear(NAMES[shard])
        return packed(home.hand_over(self._port.clock()), STATE_BYTES) if home is not None else b""

    def get(self, shard: int, at: float) -> Home | None:
        """The shard's home, while it is here and may act."""
        home = self._homes.get(shard)
        return home if home is not None and self._ownership.mine(shard, at) == home.epoch else None

    def __iter__(self) -> Iterator[Home]:
        """All of them, whether they may act or not."""
        return iter(list(self._homes.values()))

    def __len__(self) -> int:
        return len(self._homes)

    def statistics(self) -> list[HomeStatistics]:
        """How each is."""
        at = self._port.clock()
        return [home.statistics(at) for home in self]

    # -- what they are told --------------------------------------------------------------------------------------

    def on_mail(self, _subject: str, message: object, _reply: str) -> None:
        """Another gateway's origins say something."""
        if isinstance(message, ToHome):
            self._inbox.extend((message.shard, item) for item in message.items)
            self._port.wake_at(SOON)

    def credit(self, credit: Credit, at: float) -> None:
        """A container speaks of its room."""
        self._receive(at)  # its agent may have refused a call before, and its origin have handed it back
        shard = subjects.shard_of(credit.function)
        if (home := self.get(shard, at)) is not None:
            home.credit(credit, at)
            self.wake(shard)

    def shortage(self, shortage: Shortage, at: float) -> None:
        """The controller has no capacity for a version, and says why."""
        self._receive(at)
        for home in self:
            home.shortage(shortage, at)
        self.wake_all()

    def node_gone(self, gone: GoneNode, at: float) -> None:
        """An agent is gone, or counts as gone, with its containers."""
        self._receive(at)
        for home in self:
            home.node_gone(gone.node, gone.instance, at)
        self.wake_all()

    def node_unheard(self, node: str, at: float) -> None:
        """Nobody listens at a node."""
        self._receive(at)
        for home in self:
            home.node_unheard(node, at)
        self.wake_all()

    def gateway_gone(self, instance: str) -> None:
        """Nobody waits for its calls any more."""
        for home in self:
            home.gateway_gone(instance)
        self.wake_all()

    def _receive(self, at: float) -> None:
        while self._inbox:
            shard, item = self._inbox.popleft()
            if shard is not None:
                self._deliver(shard, item, at)
            else:
                self._deliver_to_all(item, at)

    def _deliver(self, shard: int, item: HomeItem, at: float) -> None:
        home = self.get(shard, at)
        if home is None:
            return  # an origin that waits repeats itself, and says it anew to the next home
        match item:
            case Enqueue(call):
                try:
                    home.enqueue(call, at)
                except PilotlightError as error:
                    self._router.to_origin(call.gateway, dropped_of(call, error))
            case Settle():
                _settle(home, item, at)
            case HandBack():
                home.refused(item.call, item.container, item.reason, item.epoch, at)
            case Withdraw(call_id):
                home.cancel(call_id)
        if home.is_awake:
            self._awake.add(shard)

    def _deliver_to_all(self, item: HomeItem, at: float) -> None:
        if isinstance(item, Settle):
            for shard, home in self._homes.items():
                _settle(home, item, at)
                self._awake.add(shard)

    # -- when they are asked -------------------------------------------------------------------------------------

    def wake(self, shard: int) -> None:
        """Something happened: let the home decide in the next turn, once for all that came up before it."""
        self._awake.add(shard)
        self._port.wake_at(SOON)

    def wake_all(self) -> None:
        """Something happened to all."""
        self._awake.update(self._homes)
        self._port.wake_at(SOON)

    def turn(self, at: float) -> None:
        """Tell the homes what has come, and let those decide that have something to."""
        self._receive(at)
        self._awake.update(int(name) for name in self._wakes.due(at))
        if self._port.connected:
            while self._awake:
                shard = self._awake.pop()
                try:
                    self._decide(shard, at)
                except Exception:
                    log.exception("a home's turn went wrong; the others go on", shard=shard)
            self._want_credits()
        if at >= self._watch_at:
            self._watch(at)
        wake = self._wakes.next()
        self._port.wake_at(self._watch_at if wake is None else min(wake, self._watch_at))

    def _decide(self, shard: int, at: float) -> None:
        home = self.get(shard, at)
        if home is None:
            return
        for dropped in home.expire(at):
            self._router.to_origin(dropped.gateway, dropped)
        for grant in home.grants(at):
            self._router.to_origin(grant.gateway, grant)
        try:
            for demand in home.demand(at):
                self._port.send(subjects.demand(self._region, demand.version), demand)
        except BusDown:
            return
        if (wake := home.next_wake()) is None:
            self._wakes.clear(NAMES[shard])
        elif wake != self._wakes.at(NAMES[shard]):
            self._wakes.set(NAMES[shard], wake)

    def _want_credits(self) -> None:
        if self._wants_credits:
            self._wants_credits = False
            with contextlib.suppress(BusDown):  # they are repeated each second anyway
                self._port.send(subjects.credits_wanted(self._region), CreditsWanted())

    # -- what people are told ------------------------------------------------------------------------------------

    def _watch(self, at: float) -> None:
        self._watch_at = at + WATCH_S
        self._publish_breakers(at)
        if self._slow_log.is_due(at):
            self._slow_log.update((flow for home in self for flow in home.statistics(at).slow), at)

    def _publish_breakers(self, at: float) -> None:
        """Every gateway lists the breakers: all are told while there are any, and once after."""
        told = tuple(islice((told for home in self for told in home.breakers(at)), BREAKERS_AT_MOST))
        if not told and not self._broken:
            return
        self._broken = bool(told)
        with contextlib.suppress(BusDown, MessageTooLarge):
            self._port.send(subjects.breakers(self._region), Breakers(gateway=self._gateway, told=told))


def packed(state: HomeState, most_bytes: int) -> bytes:
    """What is handed over, in at most `room` bytes if that can be: first of all the calls that wait."""
    whole = msgspec.msgpack.encode(state)
    if len(whole) <= most_bytes or not state.versions:
        return whole
    return msgspec.msgpack.encode(msgspec.structs.replace(state, versions={}))


def dropped_of(call: CallDescriptor, error: PilotlightError) -> Dropped:
    """What the origin of a call hears that was not let into the queue."""
    return Dropped(
        call_id=call.call_id,
        gateway=call.gateway,
        code=error.wire_code,
        detail=error.detail,
        retry_after=error.retry_after,
        limits=tuple(error.more.get("limits", ())),
    )


def _settle(home: Home, item: Settle, at: float) -> None:
    home.done(
        item.call_id, item.container, item.grant_number, at, cost=item.cost, frees=item.frees, outcome=item.outcome
    )
