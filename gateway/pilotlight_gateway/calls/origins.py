"""The driver of the origin side: passes events to the live calls of this gateway, and has their effects performed.

Grants and drops of homes wait in an inbox until the turn (`Router`). Frames of agents are handled at once: a caller
waits for them.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Mapping

import structlog

from pilotlight_core.bus import BusDown, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.call_messages import CallFrame, ChunkGroup, Ended, Grant, Refused, Started
from pilotlight_core.model.messages.node_messages import ContainerState, Credit, Shortage
from pilotlight_core.model.messages.scheduling import (
    AskCall,
    CallReply,
    Dropped,
    Settle,
    ToOrigin,
)
from pilotlight_core.model.price_book import PriceBook, standard_book
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_core.model.timers import Timers
from pilotlight_gateway.calls.attempts import declined, settlement_of
from pilotlight_gateway.calls.call_book import CallBook
from pilotlight_gateway.calls.call_sink import FailedStartTaker
from pilotlight_gateway.calls.effect_runner import EffectRunner
from pilotlight_gateway.calls.effects import ignore_failed_start
from pilotlight_gateway.calls.in_flight_call import InFlightCall
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.calls.origin import OriginState
from pilotlight_gateway.calls.reconciler import Reconciler
from pilotlight_gateway.cluster.agent_links import AgentLinks
from pilotlight_gateway.cluster.driver_port import SOON, DriverPort
from pilotlight_gateway.cluster.node_incarnations import GoneNode, NodeIncarnations
from pilotlight_gateway.cluster.router import OriginItem, Router
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership
from pilotlight_gateway.fleet.node_guard import NodeGuard
from pilotlight_gateway.fleet.preempted_containers import PreemptedContainers
from pilotlight_gateway.home.split_revisions import SplitRevisions, stale
from pilotlight_gateway.limits.call_usage import UsageTracker

WATCH_S = 0.5
"""Between two messages to agents about the calls that are wanted."""
STOOD_STILL_S = 0.5
"""A turn that comes so much later than it is due tells that the process was stopped."""
NODE = "node"
"""In place of the call id, in a complaint of the bus about a whole node."""

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
        splits: SplitRevisions | None = None,
    ) -> None:
        self.clock = port.clock
        self._splits = SplitRevisions() if splits is None else splits
        self._woke_at = float("-inf")
        """When this process last went on after it had stood still: what lay here then may hold no more."""
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
        self.on_failed_start: FailedStartTaker = ignore_failed_start
        """Told of starts of compared calls that failed and are run again; who compares versions sets it."""
        self.on_begun: Callable[[InFlightCall, Started, float], None] = lambda _live, _started, _at: None
        """Told of calls of rollouts that begin."""
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
            start_failed=lambda call, code, course: self.on_failed_start(call, code, course),
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
            case Grant() if live is not None and self._is_split_anew(live):
                # It counts as dropped, so that its version is chosen by the record as the bus has it.
                self._router.settle(declined(item), item.epoch)
                self._perform(live, live.origin.dropped(stale_drop(item, self._gateway)), at)
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

    def _is_split_anew(self, live: InFlightCall) -> bool:
        """Whether a call that waits may not go to its version any more, or this process may have slept through that."""
        origin, call = live.origin, live.origin.call
        if call.split < 0 or origin.state is not OriginState.QUEUED:
            return False
        is_aside = call.side is not None and call.side.arm is not Arm.CONTROL
        return (is_aside and origin.attempts.began_at < self._woke_at) or self._splits.is_barred(
            call.function, call.version.id, call.split
        )

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
            if live.call.side is not None and isinstance(frame, Started):
                self._report_begun(live, frame, at)
        elif frame.grant_number == grant.grant_number:  # of an older grant, it may well come from another node
            self._guard.note_frame(node, frame.call_id, at)

    def _report_begun(self, live: InFlightCall, started: Started, at: float) -> None:
        """Tell whoever watches rollouts; what goes wrong there costs no call its answer."""
        try:
            self.on_begun(live, started, at)
        except Exception:
            log.exception("a call that has begun was not noted", call=live.call.call_id)

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
            origin, seq, data = live.origin, row.seq, row.data
            try:
                if origin.awaits(row.grant_number, seq, data) and live.take_chunks(seq, data):
                    if effects := origin.took_chunks(seq, data, at):
                        self._perform(live, effects, at)
                else:
                    self._perform(live, origin.chunks(row, at), at)
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
        if at > self._watch_at + STOOD_STILL_S:
            self._woke_at = at
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


def stale_drop(grant: Grant, gateway: str) -> Dropped:
    """What a home would have said that knows of the newer record."""
    again = stale()
    return Dropped(call_id=grant.call_id, gateway=gateway, code=again.wire_code, detail=again.detail)
