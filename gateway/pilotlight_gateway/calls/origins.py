"""The driver of the origin side: every live call of this gateway, told what homes, agents and time bring it.

What homes grant and give up waits in an inbox until the turn (`Router`). What agents say is done at once: a caller
waits for it.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any

import structlog

from pilotlight_core.bus import BusDown, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_messages import (
    Chunk,
    ContainerState,
    Credit,
    Ended,
    Grant,
    Refused,
    Shortage,
    Started,
)
from pilotlight_core.model.messages.scheduling import AskCall, CallTold, Dropped, Settle, ToOrigin
from pilotlight_core.model.timers import Timers
from pilotlight_gateway.calls.call_book import CallBook
from pilotlight_gateway.calls.effect_runner import EffectRunner
from pilotlight_gateway.calls.effects import settlement_of
from pilotlight_gateway.calls.in_flight import InFlightCall
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.calls.origin import OriginState
from pilotlight_gateway.calls.reconciler import Reconciler
from pilotlight_gateway.cluster.driver_port import SOON, DriverPort
from pilotlight_gateway.cluster.node_incarnations import GoneNode
from pilotlight_gateway.cluster.router import OriginItem, Router
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership
from pilotlight_gateway.limits.call_usage import UsageTracker

WATCH_S = 0.5
"""How often agents are told which calls are wanted."""
NODE = "node"
"""Where a complaint of the bus names a call, when it is of a whole node."""

log = structlog.get_logger(__name__)


class Origins:
    """The calls whose callers this gateway holds."""

    def __init__(
        self,
        port: DriverPort,
        ownership: ShardOwnership,
        router: Router,
        inbox: deque[OriginItem],
        bodies: LargeBodies,
        *,
        region: str,
        gateway: str,
    ) -> None:
        self.clock = port.clock
        self._port = port
        self._ownership = ownership
        self._router = router
        self._inbox = inbox
        self._region = region
        self._gateway = gateway
        self._book = CallBook()
        self._tabs = UsageTracker()
        self._alarms = Timers[str]()
        self._reconciler = Reconciler(gateway)
        self._watch_at = float("-inf")
        self._runner = EffectRunner(
            port=port,
            router=router,
            bodies=bodies,
            tabs=self._tabs,
            alarms=self._alarms,
            region=region,
            gateway=gateway,
        )
        self._perform = self._runner.perform

    # -- what callers want ---------------------------------------------------------------------------------------

    def begin(self, live: InFlightCall) -> None:
        """A call has come.

        Raises:
            Conflict: if its client used the same id for another call not long ago.
        """
        at = self.clock()
        self._book.enter(live)
        self._perform(live, live.origin.begin(at), at)

    def end(self, live: InFlightCall) -> None:
        """Nobody waits for the call any more: it has its answer, or its caller went away."""
        at = self.clock()
        if live.origin.state is not OriginState.DONE:
            self._perform(live, live.origin.cancel("The caller went away."), at)
        self._runner.close_bodies(live)
        self._book.leave(live, at)

    def was_read(self, live: InFlightCall, size: int) -> None:
        """The caller has read its next chunk, of `size` bytes."""
        self._perform(live, live.origin.was_read(size), self.clock())

    def answer(self, asked: AskCall) -> CallTold:
        """How a call is, and, if that is asked, its end."""
        at = self.clock()
        live, status = self._book.find(asked.tenant, asked.call_id, at)
        if not asked.cancel or live is None or live.origin.state is OriginState.DONE:
            return CallTold(status=status)
        self._perform(live, live.origin.cancel(), at)
        return CallTold(status=status, cancelled=True)

    def running(self) -> int:
        """How many calls a container has."""
        return sum(1 for live in self._book if live.origin.grant is not None)

    def __len__(self) -> int:
        return len(self._book)

    # -- what homes say ------------------------------------------------------------------------------------------

    def on_mail(self, _subject: str, message: object, _reply: str) -> None:
        """The homes of another gateway say something."""
        if isinstance(message, ToOrigin):
            self._inbox.extend(message.granted)
            self._inbox.extend(message.dropped)
            self._port.wake_at(SOON)

    def homes_changed(self, shards: frozenset[int]) -> None:
        """What has not been granted is enqueued at the new homes."""
        at = self.clock()
        for live in self._book:
            if live.shard in shards and (owner := self._ownership.owner(live.shard)) is not None:
                self._perform(live, live.origin.home_changed(owner.epoch, at), at)

    def _hear(self, item: OriginItem, at: float) -> None:
        live = self._book.get(item.call_id)
        match item:
            case Grant() if live is not None:
                self._perform(live, live.origin.granted(item, at), at)
            case Grant():  # the call has ended since: its settlement was on the way, or is lost
                self._router.settle(
                    Settle(call_id=item.call_id, container=item.container, grant_number=item.grant_number), item.epoch
                )
            case Dropped() if live is not None:
                self._perform(live, live.origin.dropped(item), at)

    # -- what agents say -----------------------------------------------------------------------------------------

    def frame(self, frame: Refused | Started | Chunk | Ended) -> None:
        """An agent says something of a call."""
        if self._tabs.open and isinstance(frame, Ended | Refused):
            self._tabs.on_frame(frame)
        if (live := self._book.get(frame.call_id)) is not None:
            live.heard = at = self.clock()
            self._perform(live, live.origin.frame(frame, at), at)
        elif isinstance(frame, Ended):
            self._router.settle(settlement_of(frame), 0)

    def unheard(self, call: str, grant: int) -> None:
        """The bus says that no agent listens where a call was sent."""
        if (live := self._book.get(call)) is not None:
            at = self.clock()
            self._perform(live, live.origin.no_responders(grant, at), at)

    def on_ask(self, _subject: str, message: object, reply: str) -> None:
        """Another gateway asks for a call."""
        if isinstance(message, AskCall):
            with contextlib.suppress(BusDown):
                self._port.send(reply, self.answer(message))

    def credit(self, credit: Credit, at: float) -> None:
        """A container says how it is."""
        if credit.state is ContainerState.GONE:
            reason = credit.reason or "its container is gone"
            for live in self._book:
                self._perform(live, live.origin.container_gone(credit.container, reason, at), at)
        elif credit.state is not ContainerState.READY:
            self._tell_waiting(credit.version, credit.state.value, at, **credit.timeline)

    def shortage(self, shortage: Shortage, at: float) -> None:
        """The controller has no capacity for a version, and says why."""
        self._tell_waiting(shortage.version, "waiting", at, reason=shortage.reason)

    def node_gone(self, gone: GoneNode, at: float) -> None:
        """An agent is gone, or counts as gone, with everything that it ran."""
        self._tabs.node_gone(gone.node, gone.instance)
        for live in self._book:
            self._perform(live, live.origin.node_gone(gone.node, gone.instance, gone.reason, at), at)

    def node_unheard(self, node: str, at: float) -> None:
        """A node that does not listen may still run what it has."""

    def _tell_waiting(self, version: str, stage: str, at: float, /, **detail: Any) -> None:
        for live in self._book:
            if live.call.stream and live.call.version.id == version and live.origin.state is OriginState.QUEUED:
                live.stage(stage, (at - live.call.arrived) * 1000.0, **detail)

    # -- time ----------------------------------------------------------------------------------------------------

    def turn(self, at: float) -> None:
        """Hear what homes have said, and ask the origins whose time has come."""
        while self._inbox:
            item = self._inbox.popleft()
            try:
                self._hear(item, at)
            except Exception:
                log.exception("a call went wrong; the others go on", call=item.call_id)
        for call in self._alarms.due(at):
            if (live := self._book.get(call)) is not None:
                try:
                    self._perform(live, live.origin.tick(at), at)
                except Exception:
                    log.exception("a call went wrong; the others go on", call=call)
        if at >= self._watch_at:
            self._watch_at = at + WATCH_S
            self._tabs.expire(at)
            self._reconcile(at)
        wake = self._alarms.next()
        self._port.wake_at(self._watch_at if wake is None else min(wake, self._watch_at))

    def _reconcile(self, at: float) -> None:
        for node, message in self._reconciler.tell(self._book, self._tabs, at):
            complaint = subjects.unheard(self._region, self._gateway, NODE, node)
            try:
                self._port.send(subjects.control(self._region, node), message, reply=complaint)
            except (BusDown, MessageTooLarge) as error:
                log.warning("not reconciled", node=node, calls=len(message.calls), error=str(error))
