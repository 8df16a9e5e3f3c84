"""What an `Origin` wants done, done: its home is told, its agent is sent the call, its caller gets the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import msgspec
import structlog

from pilotlight_core.bus import BusDown
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import ContainerDied, Unavailable
from pilotlight_core.model.messages.scheduling import Enqueue, HandBack, HomeItem, Settle, Withdraw
from pilotlight_core.model.timers import Timers
from pilotlight_gateway.calls.effects import Effect, FailCall, FinishCall, RelayChunk, ReportStage, SendControl, SendRun
from pilotlight_gateway.calls.in_flight import UNSENT, InFlightCall, result_of
from pilotlight_gateway.calls.large_bodies import INLINE_BYTES, LargeBodies
from pilotlight_gateway.calls.origin import OriginState
from pilotlight_gateway.cluster.driver_port import DriverPort
from pilotlight_gateway.cluster.router import Router
from pilotlight_gateway.limits.call_usage import UsageTracker

LOST_ANSWER = "The answer was lost between the node and the gateway."
EARLIER_S = 0.002
"""An alarm is moved if it is to be by more than this earlier; if later, it comes for nothing once."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRunner:
    """Performs the effects of every call of this gateway, in their order, and keeps their alarms."""

    port: DriverPort
    router: Router
    bodies: LargeBodies
    tabs: UsageTracker
    alarms: Timers[str]
    """By call: when its origin wants to be asked."""
    region: str
    gateway: str
    """This process."""

    def perform(self, live: InFlightCall, effects: Iterable[Effect], at: float) -> None:
        """Do what an origin wants, and look again when it wants to be asked."""
        for effect in effects:
            match effect:  # the first four are a warm call's
                case Enqueue() | Settle():
                    self._to_home(live, effect, at)
                case SendRun() if live.call.gate is not None:
                    live.heard = UNSENT
                    live.call.gate(effect.run, partial(self._through, live, effect))
                case SendRun():
                    self._send(live, effect, at)
                case FinishCall():
                    self._finish(live, effect)
                case RelayChunk():
                    self._relay(live, effect, at)
                case SendControl():
                    self._tell(effect)
                case FailCall():
                    self._fail(live, effect, at)
                case ReportStage():
                    live.stage(effect.name, effect.ms)
                case HandBack() | Withdraw():
                    self._to_home(live, effect, at)
        self._set_alarm(live)

    def close_bodies(self, live: InFlightCall) -> None:
        """Its input and its answer are fetched or left no more."""
        self.bodies.withdraw(live.body)
        self.bodies.withdraw(live.place)
        live.body = live.place = None

    def _to_home(self, live: InFlightCall, item: HomeItem, at: float) -> None:
        if self.router.to_home(live.shard, item, at):
            live.origin.placed()

    def _through(self, live: InFlightCall, effect: SendRun, *, allowed: bool) -> bool:
        at = self.port.clock()
        if used := allowed and live.origin.uses(effect.run.grant_number):
            self._send(live, effect, at)
        else:
            self.perform(live, live.origin.withheld(effect.run.grant_number), at)
        return used

    def _send(self, live: InFlightCall, effect: SendRun, at: float) -> None:
        run, data = effect.run, live.call.input
        self.close_bodies(live)
        live.heard = at
        live.place = self.bodies.expect(live.call.tenant)
        if len(data) > INLINE_BYTES:
            live.body = self.bodies.offer(data)
        run = msgspec.structs.replace(run, body=live.body, answer=live.place)
        reply = subjects.unheard(self.region, self.gateway, run.call_id, run.grant_number)
        try:
            self.port.send(subjects.run(self.region, effect.node, effect.instance), run, reply=reply)
        except BusDown:
            self.perform(live, live.origin.no_responders(run.grant_number, at), at)

    def _tell(self, effect: SendControl) -> None:
        try:
            self.port.send(subjects.control(self.region, effect.node), effect.message)
        except BusDown:
            log.debug("not told", node=effect.node)  # an agent drops what nobody listens to by itself

    def _relay(self, live: InFlightCall, effect: RelayChunk, at: float) -> None:
        try:
            live.chunk(effect.seq, effect.data)
        except Unavailable as error:
            live.fail(error)
            self.perform(live, live.origin.cancel(), at)

    def _fail(self, live: InFlightCall, effect: FailCall, at: float) -> None:
        live.fail(effect.error)
        if (tab := live.call.tab) is not None:
            tab.count(effect.cost, effect.starts - effect.lost, effect.lost)
            if effect.left is not None:
                self.tabs.left(tab, effect.left, live.call.version.spec.timeout, at)

    def _finish(self, live: InFlightCall, effect: FinishCall) -> None:
        if (tab := live.call.tab) is not None:
            tab.count(effect.cost, effect.attempts - effect.lost, effect.lost)
        output: bytes | None = effect.output
        if effect.answer_size:
            output = self.bodies.answer(live.place)
        if output is None:
            live.fail(ContainerDied(LOST_ANSWER))
            return
        live.finish(result_of(effect, output))

    def _set_alarm(self, live: InFlightCall) -> None:
        origin, call = live.origin, live.call.id
        if origin.state is OriginState.DONE:
            self.alarms.clear(call)
            return
        wake, known = origin.wake_at, self.alarms.at(call)
        if known is None or wake < known - EARLIER_S:
            self.alarms.set(call, wake)
            self.port.wake_at(wake)
