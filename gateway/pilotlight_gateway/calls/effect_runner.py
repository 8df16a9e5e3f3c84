"""What an `Origin` wants done, done: its home is told, its agent is sent the call, its caller gets the answer."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusDown
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import ContainerDied, PilotlightError, Unavailable
from pilotlight_core.model.messages.scheduling import Enqueue, HandBack, HomeItem, Settle, Withdraw
from pilotlight_gateway.calls.effects import Effect, FailCall, FinishCall, RelayChunk, ReportStage, SendControl, SendRun
from pilotlight_gateway.calls.in_flight import UNSENT, InFlightCall, result_of
from pilotlight_gateway.calls.large_bodies import INLINE_BYTES, LargeBodies
from pilotlight_gateway.calls.origin import OriginState
from pilotlight_gateway.cluster.homes import Homes
from pilotlight_gateway.cluster.outbox import Outbox
from pilotlight_gateway.cluster.shards import Shards
from pilotlight_gateway.limits.call_usage import UsageTracker

LOST_ANSWER = "The answer was lost between the node and the gateway."

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRunner:
    """Performs the actions of every call of this gateway, in their order, and keeps their timers."""

    bus: Bus
    homes: Homes
    shards: Shards
    mailbox: Outbox
    bodies: LargeBodies
    tabs: UsageTracker
    region: str
    gateway: str
    """This process."""

    def perform(self, live: InFlightCall, actions: Iterable[Effect]) -> None:
        """Do what an origin wants, and look again when it wants to be asked."""
        for action in actions:
            match action:  # the first four are a warm call's
                case Enqueue() | Settle():
                    self._to_home(live, action)
                case SendRun() if live.call.gate is not None:
                    live.heard = UNSENT
                    live.call.gate(action.run, partial(self._through, live, action))
                case SendRun():
                    self._send(live, action)
                case FinishCall():
                    self._finish(live, action)
                case RelayChunk():
                    self._relay(live, action)
                case SendControl():
                    self._tell(action)
                case FailCall():
                    self._fail(live, action)
                case ReportStage():
                    live.stage(action.name, action.ms)
                case HandBack() | Withdraw():
                    self._to_home(live, action)
        self._set_timer(live)

    def close_bodies(self, live: InFlightCall) -> None:
        """Its input and its answer are fetched or left no more."""
        self.bodies.withdraw(live.body)
        self.bodies.withdraw(live.place)
        live.body = live.place = None

    def _to_home(self, live: InFlightCall, item: HomeItem) -> None:
        at = time.monotonic()
        if self.shards.mine(live.shard, at) is not None:
            try:
                self.homes.tell(live.shard, item, at)
                live.origin.placed()
            except PilotlightError as error:
                self.perform(live, live.origin.refused_entry(error))
        elif (owner := self.shards.owner(live.shard)) is not None and owner.gateway != self.gateway:
            self.mailbox.to_home(owner.gateway, live.shard, item)
            live.origin.placed()

    def _through(self, live: InFlightCall, action: SendRun, *, allowed: bool) -> bool:
        if used := allowed and live.origin.uses(action.run.grant):
            self._send(live, action)
        else:
            self.perform(live, live.origin.withheld(action.run.grant))
        return used

    def _send(self, live: InFlightCall, action: SendRun) -> None:
        run, data = action.run, live.call.input
        self.close_bodies(live)
        live.heard = time.monotonic()
        live.place = self.bodies.expect(live.call.tenant)
        if len(data) > INLINE_BYTES:
            live.body = self.bodies.offer(data)
        run = msgspec.structs.replace(run, body=live.body, answer=live.place)
        reply = subjects.unheard(self.region, self.gateway, run.call, run.grant)
        try:
            self.bus.publish_nowait(subjects.run(self.region, action.node, action.instance), run, reply=reply)
        except BusDown:
            self.perform(live, live.origin.no_responders(run.grant, time.monotonic()))

    def _tell(self, action: SendControl) -> None:
        try:
            self.bus.publish_nowait(subjects.control(self.region, action.node), action.message)
        except BusDown:
            log.debug("not told", node=action.node)  # an agent drops what nobody listens to by itself

    def _relay(self, live: InFlightCall, action: RelayChunk) -> None:
        try:
            live.chunk(action.seq, action.data)
        except Unavailable as error:
            live.fail(error)
            self.perform(live, live.origin.cancel())

    def _fail(self, live: InFlightCall, action: FailCall) -> None:
        live.fail(action.error)
        if (tab := live.call.tab) is not None:
            self.tabs.failed(tab, action, live.call.version.spec.timeout, time.monotonic())

    def _finish(self, live: InFlightCall, action: FinishCall) -> None:
        if (tab := live.call.tab) is not None:
            tab.count(action.cost, action.attempts - action.lost, action.lost)
        output: bytes | None = action.output
        if action.answer_size:
            output = self.bodies.answer(live.place)
        if output is None:
            live.fail(ContainerDied(LOST_ANSWER))
            return
        live.finish(result_of(action, output))

    def _set_timer(self, live: InFlightCall) -> None:
        if live.origin.state is OriginState.DONE:
            if live.timer is not None:
                live.timer.cancel()
            return
        wake = live.origin.wake_at
        if live.timer is None or wake < live.timer.when() - 0.002:
            if live.timer is not None:
                live.timer.cancel()
            live.timer = self.bus.loop.call_later(max(0.0, wake - time.monotonic()), self._tick, live)

    def _tick(self, live: InFlightCall) -> None:
        live.timer = None
        self.perform(live, live.origin.tick(time.monotonic()))
