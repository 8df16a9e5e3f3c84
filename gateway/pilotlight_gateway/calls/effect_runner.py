"""Performs what the origins of calls have decided: the effects of each call in their order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import msgspec
import structlog

from pilotlight_core.bus import BusDown
from pilotlight_core.model.errors import ContainerDied, PilotlightError, Unavailable
from pilotlight_core.model.messages.scheduling import Enqueue, HandBack, HomeItem, Settle, Withdraw
from pilotlight_core.model.price_book import PriceBook
from pilotlight_core.model.subjects import shard_of
from pilotlight_core.model.timers import Timers
from pilotlight_gateway.calls.attempts import course_of
from pilotlight_gateway.calls.call_pipeline import CallPipeline
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_responses import usage_of
from pilotlight_gateway.calls.call_sink import FailedStartTaker, report_failed_start
from pilotlight_gateway.calls.effects import (
    Effect,
    FailCall,
    FailedStart,
    HoldJournal,
    RelayChunks,
    ReportStage,
    SendControl,
    SendRun,
)
from pilotlight_gateway.calls.in_flight_call import UNSENT, InFlightCall
from pilotlight_gateway.calls.large_bodies import INLINE_BYTES, LargeBodies
from pilotlight_gateway.calls.origin import Origin, OriginState
from pilotlight_gateway.cluster.agent_links import AgentLinks
from pilotlight_gateway.cluster.driver_port import DriverPort
from pilotlight_gateway.cluster.router import Router
from pilotlight_gateway.limits.call_usage import NO_UNITS, CallUsage, UsageTracker

LOST_ANSWER = "The answer was lost between the node and the gateway."
EARLIER_S = 0.002
"""An alarm is moved only if it becomes earlier by more than this; a later one comes once for nothing."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRunner:
    """Performs the effects of every call, in their order, and keeps the calls' alarms."""

    port: DriverPort
    agents: AgentLinks
    router: Router
    bodies: LargeBodies
    usage_tracker: UsageTracker
    alarms: Timers[str]
    """By call id: when its origin's `tick` is due."""
    prices: PriceBook
    """What failed calls are told to be billed by."""
    start_failed: FailedStartTaker
    """Told of a call as its caller made it, the code of what its start came to, and how far that was."""

    def perform(self, live: InFlightCall, effects: Iterable[Effect], at: float) -> None:
        """Perform an origin's effects, and set its alarm."""
        for effect in effects:
            match effect:  # the first four cases are a warm call's
                case Enqueue() | Settle() | HandBack() | Withdraw():
                    self._to_home(live, effect, at)
                case SendRun() if live.origin.call.start_hook is not None:
                    live.heard_at = UNSENT
                    live.origin.call.start_hook(effect.run, partial(self._send_if_allowed, live, effect))
                case SendRun():
                    self._send(live, effect, at)
                case CallResult():
                    self._finish(live, effect, at)
                case RelayChunks():
                    self._relay(live, effect, at)
                case SendControl():
                    self._send_control(effect)
                case FailCall():
                    self._fail(live, effect, at)
                case ReportStage() | FailedStart():
                    self._report(live, effect)
                case HoldJournal():
                    self._hold_journal(live, effect, at)
        self._set_alarm(live)

    def close_bodies(self, live: InFlightCall) -> None:
        """Withdraw the call's large input, and the place for its answer."""
        self.bodies.withdraw(live.body)
        self.bodies.withdraw(live.place)
        live.body = live.place = None

    def _to_home(self, live: InFlightCall, item: HomeItem, at: float) -> None:
        if self.router.to_home(live.shard, item, at):
            live.origin.placed()

    def _send_if_allowed(self, live: InFlightCall, effect: SendRun, *, allowed: bool) -> bool:
        at = self.port.clock()
        if used := allowed and live.origin.uses(effect.run.grant_number):
            self._send(live, effect, at)
        else:
            self.perform(live, live.origin.withheld(effect.run.grant_number), at)
        return used

    def _send(self, live: InFlightCall, effect: SendRun, at: float) -> None:
        run, data = effect.run, live.origin.call.input
        self.close_bodies(live)
        live.heard_at = at
        live.place = self.bodies.expect(live.call.tenant)
        if len(data) > INLINE_BYTES:
            live.body = self.bodies.offer(data)
        run = msgspec.structs.replace(run, body=live.body, answer=live.place)
        try:
            self.agents.send_run(effect.node, effect.instance, run)
        except BusDown:
            self.perform(live, live.origin.no_responders(run.grant_number, at), at)

    def _send_control(self, effect: SendControl) -> None:
        try:
            self.agents.send_control(effect.node, effect.message)
        except BusDown:
            log.debug(
                "a control message was not sent", node=effect.node
            )  # an agent drops a call without listeners by itself

    def _relay(self, live: InFlightCall, effect: RelayChunks, at: float) -> None:
        try:
            live.relay_chunks(effect.seq, effect.data)
        except Unavailable as error:
            live.fail(error)
            self.perform(live, live.origin.cancel(), at)

    def _report(self, live: InFlightCall, effect: ReportStage | FailedStart) -> None:
        if isinstance(effect, FailedStart):
            report_failed_start(self.start_failed, live.call, effect.code, effect.course)
            return
        live.report_stage(effect.name, effect.ms, effect.detail)
        if effect.detail:  # it moves, or cannot any more
            log.info("a stream is told", call=live.call.call_id, stage=effect.name, **effect.detail)

    def _hold_journal(self, live: InFlightCall, effect: HoldJournal, at: float) -> None:
        try:
            live.hold_journal(effect.size)
        except Unavailable as error:
            self.perform(live, live.origin.close_journal(error.detail, at), at)

    def _fail(self, live: InFlightCall, effect: FailCall, at: float) -> None:
        if (usage := live.call.usage) is not None:  # before the caller is told, who settles it
            _count(usage, live)
            if effect.left is not None:
                self.usage_tracker.left(usage, effect.left, live.origin.call.version.spec.timeout, at)
        sent, gateway_ms = effect.left is not None, live.call.gateway_ms
        effect.error.course = course = course_of(live.attempts, at, gateway_ms, sent=sent)
        if course.spent is not None:
            effect.error.more["usage"] = usage_of(course, self.prices, live.call.tenant)
        live.fail(effect.error if live.pipeline is None else live.pipeline.explained(effect.error))

    def _finish(self, live: InFlightCall, result: CallResult, at: float) -> None:
        if live.pipeline is not None:
            self._go_on(live, live.pipeline, result, at)
            return
        if (usage := live.call.usage) is not None:
            _count(usage, live)
            usage.sold = result.sold or NO_UNITS
        if result.answer_size:
            if (output := self.bodies.answer(live.place)) is None:
                live.fail(ContainerDied(LOST_ANSWER))
                return
            result = msgspec.structs.replace(result, output=output)
        live.finish(result)

    def _go_on(self, live: InFlightCall, pipeline: CallPipeline, result: CallResult, at: float) -> None:
        """A stage has ended well: begin the next one, or finish the call."""
        done = live.origin
        try:
            if result.answer_size:
                if (output := self.bodies.answer(live.place)) is None:
                    raise ContainerDied(LOST_ANSWER)
                result = msgspec.structs.replace(result, output=output, answer_size=0)
            call = pipeline.go_on(done.attempts, result)
            if call is not None:
                live.hold_value(len(call.input))
        except PilotlightError as error:
            self._fail(live, FailCall(error=error, left=None), at)
            return
        if call is None:
            result = pipeline.result()
            if (usage := live.call.usage) is not None:
                _count(usage, live)
                usage.sold = result.sold or NO_UNITS
            live.finish(result)
            return
        self.close_bodies(live)
        live.heard_at = UNSENT
        live.origin = Origin(call, done.gateway, at, done.last_number)
        live.shard = shard_of(call.function)
        self.perform(live, live.origin.begin(at), at)

    def _set_alarm(self, live: InFlightCall) -> None:
        origin, call_id = live.origin, live.call.call_id
        if origin.state is OriginState.DONE:
            self.alarms.clear(call_id)
            return
        wake, known = origin.wake_at, self.alarms.at(call_id)
        if known is None or wake < known - EARLIER_S:
            self.alarms.set(call_id, wake)
            self.port.wake_at(wake)


def _count(usage: CallUsage, live: InFlightCall) -> None:
    if live.pipeline is None:
        own = live.origin.attempts
        usage.count(own.cost, own.starts - own.lost_starts, own.lost_starts, own.tokens, own.all_spent)
        return
    attempts = live.attempts
    lost = sum([one.lost_starts for one in attempts])
    usage.count(
        sum([one.cost for one in attempts]),
        sum([one.starts for one in attempts]) - lost,
        lost,
        sum([one.tokens for one in attempts]),
        tuple([one for each in attempts for one in each.all_spent]),
    )
