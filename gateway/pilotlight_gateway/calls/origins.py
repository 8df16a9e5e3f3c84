"""The driver of the origin side: passes events to the live calls of this gateway, and performs their effects.

Grants and drops of homes wait in an inbox until the turn (`Router`). Frames of agents are handled at once: a caller
waits for them.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import msgspec
import structlog

from pilotlight_core.bus import BusDown, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import ContainerDied, PilotlightError, Unavailable
from pilotlight_core.model.messages.call_messages import CallFrame, ChunkGroup, Ended, Grant, Refused
from pilotlight_core.model.messages.node_messages import ContainerState, Credit, Shortage
from pilotlight_core.model.messages.scheduling import (
    AskCall,
    CallReply,
    Dropped,
    Enqueue,
    HandBack,
    HomeItem,
    Settle,
    ToOrigin,
    Withdraw,
)
from pilotlight_core.model.price_book import PriceBook, standard_book
from pilotlight_core.model.subjects import shard_of
from pilotlight_core.model.timers import Timers
from pilotlight_gateway.calls.attempts import course_of, declined, settlement_of
from pilotlight_gateway.calls.call_book import CallBook
from pilotlight_gateway.calls.call_pipeline import CallPipeline
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_responses import usage_of
from pilotlight_gateway.calls.effects import (
    Effect,
    FailCall,
    HoldJournal,
    RelayChunks,
    ReportStage,
    SendControl,
    SendRun,
)
from pilotlight_gateway.calls.in_flight_call import UNSENT, InFlightCall
from pilotlight_gateway.calls.large_bodies import INLINE_BYTES, LargeBodies
from pilotlight_gateway.calls.origin import Origin, OriginState
from pilotlight_gateway.calls.reconciler import Reconciler
from pilotlight_gateway.cluster.agent_links import AgentLinks
from pilotlight_gateway.cluster.driver_port import SOON, DriverPort
from pilotlight_gateway.cluster.node_incarnations import GoneNode, NodeIncarnations
from pilotlight_gateway.cluster.router import OriginItem, Router
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership
from pilotlight_gateway.fleet.node_guard import NodeGuard
from pilotlight_gateway.fleet.preempted_containers import PreemptedContainers
from pilotlight_gateway.limits.call_usage import NO_UNITS, CallUsage, UsageTracker

WATCH_S = 0.5
"""Between two messages to agents about the calls that are wanted."""
NODE = "node"
"""In place of the call id, in a complaint of the bus about a whole node."""
LOST_ANSWER = "The answer was lost between the node and the gateway."
EARLIER_S = 0.002
"""An alarm is moved only if it becomes earlier by more than this; a later one comes once for nothing."""

log = structlog.get_logger(__name__)


class Origins:
    """The live calls whose callers this gateway holds."""

    def __init__(
        self,
        port: DriverPort,
        agents: AgentLinks,
        ownership: ShardOwnership,
        router: Router,
        inbox: deque[OriginItem],
        bodies: LargeBodies,
        guard: NodeGuard,
        nodes: NodeIncarnations,
        *,
        region: str,
        gateway: str,
    ) -> None:
        self.clock = port.clock
        self._guard = guard
        self._nodes = nodes
        self._port = port
        self._agents = agents
        self._ownership = ownership
        self._router = router
        self._inbox = inbox
        self._region = region
        self._gateway = gateway
        self._book = CallBook()
        self._usage_tracker = UsageTracker()
        self._alarms = Timers[str]()
        self._reconciler = Reconciler(gateway)
        self._preempted = PreemptedContainers()
        self._watch_at = float("-inf")
        self._bodies = bodies
        self.set_prices(standard_book())

    # -- what callers want ---------------------------------------------------------------------------------------

    def set_prices(self, prices: PriceBook) -> None:
        """Set the prices by which failed calls are told what they are billed."""
        self._runner = EffectRunner(
            port=self._port,
            agents=self._agents,
            router=self._router,
            bodies=self._bodies,
            usage_tracker=self._usage_tracker,
            alarms=self._alarms,
            prices=prices,
        )
        self._perform = self._runner.perform

    def begin(self, live: InFlightCall) -> None:
        """A call begins.

        Raises:
            Conflict: its client used the same id for another known call.
        """
        at = self.clock()
        self._book.enter(live)
        self._perform(live, live.origin.begin(at), at)
        self._port.take_turn_if_many()

    def end(self, live: InFlightCall) -> None:
        """The call has its answer, or its caller went away."""
        at = self.clock()
        if live.origin.state is not OriginState.DONE:
            self._perform(live, live.origin.cancel("The caller went away."), at)
        self._runner.close_bodies(live)
        self._book.leave(live, at)

    def was_read(self, live: InFlightCall, chunks: int, size: int) -> None:
        """The caller has read so many chunks, of `size` bytes together."""
        if effects := live.origin.was_read(chunks, size):
            self._perform(live, effects, self.clock())

    def answer(self, asked: AskCall) -> CallReply:
        """The status of a call; cancels it if that is asked."""
        at = self.clock()
        live, status = self._book.find(asked.tenant, asked.call_id, at)
        if not asked.cancel or live is None or live.origin.state is OriginState.DONE:
            return CallReply(status=status)
        self._perform(live, live.origin.cancel(), at)
        return CallReply(status=status, cancelled=True)

    def end_calls_of(self, is_over: Callable[[str], bool], reason: str) -> int:
        """Cancel the calls of the tenants for which `is_over` is true; how many."""
        at, over = self.clock(), [live for live in self._book if is_over(live.call.tenant)]
        alive = [live for live in over if live.origin.state is not OriginState.DONE]
        for live in alive:
            self._perform(live, live.origin.cancel(reason), at)
        return len(alive)

    def find(self, call_id: str) -> InFlightCall | None:
        """A live call."""
        return self._book.get(call_id)

    def running(self) -> int:
        """The number of calls with a grant."""
        return sum(1 for live in self._book if live.origin.grant is not None)

    def __len__(self) -> int:
        return len(self._book)

    # -- what homes say ------------------------------------------------------------------------------------------

    def on_mail(self, _subject: str, message: object, _reply: str) -> None:
        """The homes of another gateway have sent grants and drops."""
        if isinstance(message, ToOrigin):
            self._inbox.extend(message.granted)
            self._inbox.extend(message.dropped)
            self._port.wake_at(SOON)

    def homes_changed(self, shards: frozenset[int]) -> None:
        """Calls without a grant are enqueued at their new homes."""
        at = self.clock()
        for live in self._book:
            if live.shard in shards and (owner := self._ownership.owner(live.shard)) is not None:
                self._perform(live, live.origin.home_changed(owner.epoch, at), at)

    def _on_home_item(self, item: OriginItem, at: float) -> None:
        live = self._book.get(item.call_id)
        match item:
            case Grant() if live is not None:
                effects = live.origin.granted(item, at)
                if effects and isinstance(first := effects[0], Settle):
                    # It is declined: to the home that has granted it, which may not be known as the call's yet.
                    self._router.settle(first, item.epoch)
                    effects = effects[1:]
                self._perform(live, effects, at)
            case Grant():  # the call has ended since: its settlement was on the way, or is lost
                self._router.settle(declined(item), item.epoch)
            case Dropped() if live is not None and item.version in ("", live.origin.call.version.id):
                self._perform(live, live.origin.dropped(item), at)

    # -- what agents say -----------------------------------------------------------------------------------------

    def on_frame(self, node: str, frame: CallFrame) -> None:
        """The agent of `node` has sent a frame of a call."""
        at = self.clock()
        if self._usage_tracker.open and isinstance(frame, Ended | Refused):
            self._usage_tracker.on_frame(node, frame, at)
        if (live := self._book.get(frame.call_id)) is None:
            if isinstance(frame, Ended):
                self._router.settle(settlement_of(node, frame), 0)
            return
        grant = live.origin.grant
        if grant is None or grant.node == node:
            live.heard_at = at
            self._perform(live, live.origin.frame(node, frame, at), at)
        elif frame.grant_number == grant.grant_number:  # of an older grant, it may well come from another node
            self._guard.note_frame(node, frame.call_id, at)

    def on_chunks(self, node: str, group: ChunkGroup) -> None:
        """The agent of `node` has sent chunks of several calls."""
        at = self.clock()
        for row in group.rows:
            if (live := self._book.get(row.call_id)) is None or (grant := live.origin.grant) is None:
                continue
            if grant.node != node:
                if row.grant_number == grant.grant_number:
                    self._guard.note_frame(node, row.call_id, at)
                continue
            live.heard_at = at
            try:
                self._perform(live, live.origin.chunks(row, at), at)
            except Exception:
                log.exception("a call went wrong; the others go on", call=row.call_id)

    def on_unheard(self, call_id: str, grant_number: int) -> None:
        """No agent listens where a call was sent."""
        if (live := self._book.get(call_id)) is not None:
            at = self.clock()
            self._perform(live, live.origin.no_responders(grant_number, at), at)

    def on_ask(self, _subject: str, message: object, reply: str) -> None:
        """Another gateway asks for a call, or cancels it."""
        if isinstance(message, AskCall):
            with contextlib.suppress(BusDown):
                self._port.send(reply, self.answer(message))

    def on_credit(self, credit: Credit, at: float) -> None:
        """A container reports its state."""
        if self._preempted.note(credit.container, is_so=credit.preempted):
            for live in self._book:
                live.origin.container_preempted(credit.container, is_so=credit.preempted)
        if credit.state is ContainerState.GONE:
            reason = credit.reason or "its container is gone"
            for live in self._book:
                self._perform(live, live.origin.container_gone(credit.node, credit.container, reason, at), at)
        elif credit.state is not ContainerState.READY:
            self._report_to_waiting(credit.version, credit.state.value, at, credit.timeline)

    def on_shortage(self, shortage: Shortage, at: float) -> None:
        """The controller has no capacity for a version."""
        for live in self._book:
            if live.origin.call.version.id == shortage.version:
                live.origin.note_shortage(shortage.reason, at)
        self._report_to_waiting(shortage.version, "waiting", at, {"reason": shortage.reason})

    def node_gone(self, gone: GoneNode, at: float) -> None:
        """An agent is gone, or counts as gone."""
        self._usage_tracker.node_gone(gone.node, gone.instance)
        for live in self._book:
            self._perform(live, live.origin.node_gone(gone.node, gone.instance, gone.reason, at), at)

    def on_node_unheard(self, node: str, at: float) -> None:
        """Nothing: a node that does not listen may still run its calls."""

    def _report_to_waiting(self, version: str, stage: str, at: float, detail: Mapping[str, object]) -> None:
        for live in self._book:
            origin = live.origin
            if live.call.stream and origin.call.version.id == version and origin.state is OriginState.QUEUED:
                live.report_stage(stage, (at - live.call.arrived_at) * 1000.0, detail)

    # -- time ----------------------------------------------------------------------------------------------------

    def take_turn(self, at: float) -> None:
        """Empty the inbox, call the origins whose alarms are due, and reconcile."""
        while self._inbox:
            item = self._inbox.popleft()
            try:
                self._on_home_item(item, at)
            except Exception:
                log.exception("a call went wrong; the others go on", call=item.call_id)
        for call_id in self._alarms.due(at):
            if (live := self._book.get(call_id)) is not None:
                try:
                    self._perform(live, live.origin.tick(at), at)
                except Exception:
                    log.exception("a call went wrong; the others go on", call=call_id)
        if at >= self._watch_at:
            self._watch_at = at + WATCH_S
            self._usage_tracker.expire(at)
            self._usage_tracker.lose_gone(self._nodes.is_gone)
            self._reconcile(at)
        wake = self._alarms.next()
        self._port.wake_at(self._watch_at if wake is None else min(wake, self._watch_at))

    def _reconcile(self, at: float) -> None:
        for node, message in self._reconciler.messages(self._book, self._usage_tracker, at):
            complaint = subjects.unheard(self._region, self._gateway, NODE, node)
            try:
                self._agents.send_control(node, message, reply=complaint)
            except (BusDown, MessageTooLarge) as error:
                log.warning("not reconciled", node=node, calls=len(message.calls), error=str(error))


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
                case ReportStage():
                    self._report_stage(live, effect)
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
            # An agent drops a call without listeners by itself.
            log.debug("a control message was not sent", node=effect.node)

    def _relay(self, live: InFlightCall, effect: RelayChunks, at: float) -> None:
        try:
            live.relay_chunks(effect.seq, effect.data)
        except Unavailable as error:
            live.fail(error)
            self.perform(live, live.origin.cancel(), at)

    def _report_stage(self, live: InFlightCall, effect: ReportStage) -> None:
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
