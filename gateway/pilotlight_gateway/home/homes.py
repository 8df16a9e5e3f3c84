"""The driver of homes: one `Home` for each shard of this gateway.

Items for homes wait in the inbox of the `Router` until the next turn; grants, drops and demands leave through the
router and the port.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec
import structlog

from pilotlight_core.bus import BusDown, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.call_messages import CallDescriptor
from pilotlight_core.model.messages.demand import NO_BACKLOG, Demand, Demands, JobBacklog
from pilotlight_core.model.messages.node_messages import Credit, Shortage
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
from pilotlight_gateway.home.home_report import HomeLoads, HomeVersionLoad, loads_of
from pilotlight_gateway.home.split_revisions import SplitRevisions

BREAKERS_AT_MOST = 5_000
"""Breakers in one message: 500 KiB. Only people read them."""
DEMANDS_AT_MOST = 500
"""Demands in one message: half of a bus's MiB, with the longest names."""
WATCH_S = 0.5
"""Between two reports of breakers."""
NAMES = tuple(str(shard) for shard in range(subjects.SHARDS))

log = structlog.get_logger(__name__)


class Homes:
    """The homes of this gateway. They act only while their shard is owned and the bus is connected."""

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
        self._wants_credits = False
        self._watch_at = float("-inf")
        self._broken = False
        self.splits = SplitRevisions()
        self.backlog_of: Callable[[str], JobBacklog] = lambda _: NO_BACKLOG
        """The jobs of a function (`tenant:app.function`) that wait beyond those that are queued here."""

    # -- shards ----------------------------------------------------------------------------------------------------

    def begin(self, shard: int, epoch: int, state: bytes) -> None:
        """Begin a home with the state of the former one; origins and credits supply the rest."""
        home = self._homes[shard] = Home(gateway=self._gateway, epoch=epoch, limits=self._limits)
        if state:
            home.restore(msgspec.msgpack.decode(state, type=HomeState), self._port.clock())
        self._wants_credits = True
        self.wake(shard)

    def end(self, shard: int) -> bytes:
        """End the home of a shard; returns the state for the next one."""
        at, home = self._port.clock(), self._homes.pop(shard, None)
        self._wakes.clear(NAMES[shard])
        if home is None:
            return b""
        self._receive_last(home, shard, at)
        return packed(home.hand_over(at), STATE_BYTES)

    def get(self, shard: int, at: float) -> Home | None:
        """The home of a shard, if it is here and may act."""
        home = self._homes.get(shard)
        return home if home is not None and self._ownership.mine(shard, at) == home.epoch else None

    def __iter__(self) -> Iterator[Home]:
        """All homes, including those that may not act."""
        return iter(list(self._homes.values()))

    def __len__(self) -> int:
        return len(self._homes)

    def statistics(self) -> list[HomeStatistics]:
        at = self._port.clock()
        return [home.statistics(at) for home in self]

    def loads(self) -> HomeLoads:
        """What other gateways are told of the queues here."""
        return loads_of((queue for home in self for queue in home.queues), self._port.clock())

    def version_loads(self) -> list[HomeVersionLoad]:
        """What is there of each version at the homes that may act."""
        at = self._port.clock()
        mine = [home for shard in list(self._homes) if (home := self.get(shard, at)) is not None]
        return [load for home in mine for load in home.version_loads(at)]

    # -- what arrives ----------------------------------------------------------------------------------------------

    def on_mail(self, _subject: str, message: object, _reply: str) -> None:
        """Items from origins at another gateway."""
        if isinstance(message, ToHome):
            self._inbox.extend((message.shard, item) for item in message.items)
            self._port.wake_at(SOON)

    def on_credit(self, credit: Credit, at: float) -> None:
        self._receive(at)  # a call that this agent refused may be in the inbox
        shard = subjects.shard_of(credit.function)
        if (home := self.get(shard, at)) is not None:
            home.on_credit(credit, at)
            self.wake(shard)

    def on_shortage(self, shortage: Shortage, at: float) -> None:
        self._receive(at)
        for home in self:
            home.on_shortage(shortage, at)
        self.wake_all()

    def node_gone(self, gone: GoneNode, at: float) -> None:
        self._receive(at)
        for home in self:
            home.node_gone(gone.node, gone.instance, at)
        self.wake_all()

    def on_node_unheard(self, node: str, at: float) -> None:
        self._receive(at)
        for home in self:
            home.on_node_unheard(node, at)
        self.wake_all()

    def on_record(self, key: str, record: Any) -> None:
        """A record of the registry has changed: of a rollout, calls that wait for what they may not reach go back."""
        self.splits.changed(key, record)
        if left := self.splits.take_left():
            for home in self:
                home.send_back(left)
            self.wake_all()

    def gateway_gone(self, instance: str) -> None:
        for home in self:
            home.gateway_gone(instance)
        self.wake_all()

    def _receive(self, at: float) -> None:
        while self._inbox:
            shard, item = self._inbox.popleft()
            try:
                if shard is None:
                    self._deliver_to_all(item, at)
                else:
                    self._deliver(shard, item, at)
            except Exception:
                log.exception("a home's turn went wrong; the others go on", shard=shard)

    def _receive_last(self, home: Home, shard: int, at: float) -> None:
        """Deliver what came for a home while its shard was owned: its state would miss it."""
        last = [(to, item) for to, item in self._inbox if to is None or to == shard]
        others = [(to, item) for to, item in self._inbox if to != shard]
        self._inbox.clear()
        self._inbox.extend(others)
        for to, item in last:
            if to is not None:
                self._apply(home, shard, item, at)
            elif isinstance(item, Settle):
                _settle(home, item, at)

    def _deliver(self, shard: int, item: HomeItem, at: float) -> None:
        if (home := self.get(shard, at)) is not None:
            self._apply(home, shard, item, at)  # else origins repeat it to the next home

    def _apply(self, home: Home, shard: int, item: HomeItem, at: float) -> None:
        match item:
            case Enqueue(call):
                try:
                    self.splits.check(call, at, home.has)
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

    # -- turns -----------------------------------------------------------------------------------------------------

    def wake(self, shard: int) -> None:
        """Let a home decide in the next turn, once for all events before it."""
        self._awake.add(shard)
        self._port.wake_at(SOON)

    def wake_all(self) -> None:
        """Let every home decide in the next turn."""
        self._awake.update(self._homes)
        self._port.wake_at(SOON)

    def take_turn(self, at: float) -> None:
        """Deliver the inbox and let every home decide that has something to."""
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
            self._publish(shard, home.demand(at))
        except BusDown:
            return
        if (wake := home.next_wake()) is None:
            self._wakes.clear(NAMES[shard])
        elif wake != self._wakes.at(NAMES[shard]):
            self._wakes.set(NAMES[shard], wake)

    def _publish(self, shard: int, demands: list[Demand]) -> None:
        """Publish what is due, in one message unless it would be too large."""
        told = [self._with_backlog(demand) for demand in demands]
        for first in range(0, len(told), DEMANDS_AT_MOST):
            message = Demands(gateway=self._gateway, shard=shard, items=tuple(told[first : first + DEMANDS_AT_MOST]))
            self._port.send(subjects.demands(self._region, shard), message)

    def _with_backlog(self, demand: Demand) -> Demand:
        ready, held = self.backlog_of(demand.function)
        return msgspec.structs.replace(demand, backlog=ready, held_jobs=held) if ready or held else demand

    def _want_credits(self) -> None:
        if self._wants_credits:
            self._wants_credits = False
            with contextlib.suppress(BusDown):  # they are repeated each second anyway
                self._port.send(subjects.credits_wanted(self._region), CreditsWanted())

    # -- reports ---------------------------------------------------------------------------------------------------

    def _watch(self, at: float) -> None:
        self._watch_at = at + WATCH_S
        self._publish_breakers(at)

    def _publish_breakers(self, at: float) -> None:
        """Publish the breakers while there are any, and once after, for the lists of all gateways."""
        reports = tuple(islice((report for home in self for report in home.breakers(at)), BREAKERS_AT_MOST))
        if not reports and not self._broken:
            return
        self._broken = bool(reports)
        with contextlib.suppress(BusDown, MessageTooLarge):
            self._port.send(subjects.breakers(self._region), Breakers(gateway=self._gateway, reports=reports))


def packed(state: HomeState, most_bytes: int) -> bytes:
    """Encode a state in at most `most_bytes` if possible: calls come before what was learnt of versions."""
    whole = msgspec.msgpack.encode(state)
    if len(whole) <= most_bytes or not state.versions:
        return whole
    return msgspec.msgpack.encode(msgspec.structs.replace(state, versions={}))


def dropped_of(call: CallDescriptor, error: PilotlightError) -> Dropped:
    """The answer to the origin of a call that was refused at admission."""
    return Dropped(
        call_id=call.call_id,
        gateway=call.gateway,
        code=error.wire_code,
        detail=error.detail,
        retry_after=error.retry_after,
        limits=tuple(error.more.get("limits", ())),
        version=call.version,
    )


def _settle(home: Home, item: Settle, at: float) -> None:
    if home.node_of(item.call_id) == item.node:
        home.done(
            item.call_id, item.container, item.grant_number, at, cost=item.cost, frees=item.frees, outcome=item.outcome
        )
