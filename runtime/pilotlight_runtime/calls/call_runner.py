"""The calls of one ready container: events in, frames out through `RunnerIO`. No function waits.

    accepted --> (FETCHING) --> WAITING --> RUNNING --> (UPLOADING) --> Ended
                     |             |           |
                     +-- expired --+           +-- the guest answers exactly once; what was decided before stands
                     +- cancelled -+

A call that is not RUNNING never started: it ends with `started=False` or is refused, and may run elsewhere. The guest
works on at most `max_inputs` inputs at a time; a batch is one input.
"""

from __future__ import annotations

import math
from collections import deque

from pilotlight_core.model.messages.call_messages import Ended, Outcome, Refusal, Refused, RemoteError
from pilotlight_core.model.messages.node_messages import STOP_GRACE_S
from pilotlight_core.model.messages.usage_facts import units_fault
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_runtime.calls.abandoned_work import overdue_work
from pilotlight_runtime.calls.batch_queue import DynamicBatch, DynamicBatches
from pilotlight_runtime.calls.call_errors import not_taken_error, truncated_error
from pilotlight_runtime.calls.chunk_relay import STALLED_S, ChunkRelay, start_of
from pilotlight_runtime.calls.preemption_plan import PreemptionPlan
from pilotlight_runtime.calls.run_times import RunTimes
from pilotlight_runtime.calls.runner_io import RunnerIO
from pilotlight_runtime.calls.slot_table import AcceptedCall, CallPhase, whole_us
from pilotlight_runtime.guest import frames as guest

INLINE_BYTES = 256 * 1024
"""A larger answer is uploaded to the origin's internal listener, since frames share one connection."""
CUT_OFF_S = 0.5
"""A guest that is to end a call early has so long to say what it counted of it; plain code does not even hear of it."""
ORPHANED_S = 10.0
"""An origin that has not cancelled a call so long after its deadline has died."""

GUEST_OUTCOMES = frozenset((Outcome.OK, Outcome.RAISED, Outcome.BAD_INPUT, Outcome.BAD_OUTPUT, Outcome.CANCELLED))


class CallRunner:
    """Runs one container's calls from acceptance to their last frame. `at` is the present instant."""

    def __init__(self, spec: FunctionSpec, container: str, io: RunnerIO, *, stop_grace_s: float = STOP_GRACE_S) -> None:
        """`stop_grace_s`: how long a started call may go on that nobody wants any more."""
        self._spec = spec
        self._container = container
        self._io = io
        self._stop_grace_s = stop_grace_s
        self._streams = ChunkRelay(spec, io)
        self._batches = DynamicBatches(spec)
        self._times = RunTimes()
        self.is_batching = bool(self._batches)
        self._max_inputs = spec.max_inputs
        self._held: dict[str, AcceptedCall] = {}
        self._queue: deque[AcceptedCall] = deque()
        self._running: dict[str, AcceptedCall] = {}  # in the order of their start
        self._busy_inputs = 0  # calls and batches that the guest has
        self._begun = 0  # calls so far
        self._halted = False

    # -- state --------------------------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        return not self._held

    @property
    def held(self) -> tuple[str, ...]:
        return tuple(self._held)

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def batch_room(self) -> int:
        return self._batches.room() if self.is_batching else 0

    def only_call(self) -> str:
        """The id of the one call that the guest has; "" if it has none or several."""
        return next(iter(self._running)) if len(self._running) == 1 else ""

    def holds(self, call_id: str) -> bool:
        return call_id in self._held

    def find_running(self, call_id: str) -> AcceptedCall | None:
        """A call that the guest has, and that is still wanted."""
        call = self._running.get(call_id)
        return call if call is not None and call.outcome is None else None

    def calls_of(self, gateway: str) -> list[str]:
        return [call_id for call_id, call in self._held.items() if call.run.gateway == gateway]

    # -- from the origin ----------------------------------------------------------------------------------------

    def add(self, call: AcceptedCall, at: float) -> None:
        """Hold an accepted call; it starts at once if the guest has room."""
        call_id = call.call_id
        self._held[call_id] = call
        if call.run.body is None:
            self._enqueue(call, at)
        else:
            call.phase = CallPhase.FETCHING
            self._io.fetch_input(call, self.on_input)
        if call_id not in self._running and call_id in self._held and not call.was_started:
            self._io.note_waiting(call)

    def on_input(self, call: AcceptedCall, data: bytes | None, at: float) -> None:
        """Take a call's large input; None if the fetch failed."""
        if self._held.get(call.call_id) is not call:
            return
        if data is None:
            self._refuse(call, Refusal.UNREADABLE)
            return
        call.input, call.ready_at, call.phase = data, at, CallPhase.WAITING
        self._enqueue(call, at)

    def cancel(self, call_id: str, reason: str, at: float) -> None:
        """Cancel a call: remove it if it has not started, else drop its answer."""
        call = self._held.get(call_id)
        if call is None or call.phase is CallPhase.UPLOADING:
            return
        if call.phase is not CallPhase.RUNNING:
            self._dequeue(call)
            self._end(call, call.decide(Outcome.CANCELLED, reason=reason), at)
        elif call.outcome is None:
            call.decide(Outcome.CANCELLED, reason=reason)
            call.abandoned_at = at
            self._io.send_to_guest(guest.CancelCall(call_id=call_id))
            self._io.end_nested(call)

    def on_window(self, call_id: str, upto: int, at: float, movable: bool | None = None) -> None:
        """The origin has passed on a stream's chunks up to `upto`; whether it is `movable`, if that has changed."""
        if (call := self._running.get(call_id)) is not None:
            call.is_movable = call.is_movable if movable is None else movable
            self._streams.on_window(call, upto, at)

    def on_upload(self, call: AcceptedCall, taken: bool, at: float) -> None:
        size, call.output = len(call.output), b""
        if taken:
            self._end(call, Outcome.OK, at, answer_size=size)
        else:
            call.outcome = Outcome.BAD_OUTPUT
            call.error = not_taken_error(size, call.run.answer)
            self._end(call, call.outcome, at)

    def take_input(self) -> bool:
        """Take one of the guest's inputs for what is no call; False: there is none."""
        if self._busy_inputs >= self._max_inputs or self._halted:
            return False
        self._busy_inputs += 1
        return True

    def free_input(self, at: float) -> None:
        """Give such an input back."""
        self._busy_inputs -= 1
        self.pump(at)

    def refuse_waiting(self) -> None:
        """Give back the calls that the guest does not have: they may run elsewhere."""
        for call in [call for call in self._held.values() if not call.was_started]:
            self._dequeue(call)
            self._refuse(call, Refusal.DRAINING)

    def drain(self, at: float) -> None:
        """Make every batch due, since no more calls come."""
        self._batches.stop_waiting()
        self.pump(at)

    def preempt(self, plan: PreemptionPlan, at: float) -> None:
        """End the calls that do not fit into the time that the node has. Every few 10 ms."""
        spec = self._spec
        for call in [call for call in self._held.values() if call.phase is CallPhase.RUNNING]:
            since = call.abandoned_at
            if since is not None:
                if at - since >= CUT_OFF_S and (call.is_preempted or at >= plan.until_at):
                    self._cut_off(call, at)
                continue
            can_move = call.can_move
            if plan.ends_call(
                at,
                remaining_s=self._times.remaining_s(call.run.method, at - call.started_at, spec.timeout),
                may_rerun=can_move if call.run.resume is not None else spec.idempotent,
                has_sent=call.sent_seq > 0 and not can_move,
            ):
                call.is_preempted = True
                call.decide(Outcome.DIED, reason=plan.reason)
                call.abandoned_at = at
                self._io.send_to_guest(guest.CancelCall(call_id=call.call_id))
                self._io.end_nested(call)

    # -- from the guest -----------------------------------------------------------------------------------------

    def on_result(self, frame: guest.Result, at: float) -> None:
        running = self._running
        call = running.get(frame.call_id)
        if call is None or (self.is_batching and self._batches.is_batched(call)):
            self._kill_untrusted("the guest answered a call that it does not have")
            return
        beside = len(running)
        del running[frame.call_id]
        self._busy_inputs -= 1
        self._answer(call, frame, frame, at)
        if frame.outcome is Outcome.OK:
            self._times.observe(call.run.method, at - call.started_at)
            self._io.record_batch(beside, (at - call.started_at) * 1000.0)
        if self._queue or self.is_batching:
            self.pump(at)

    def on_batch_result(self, frame: guest.BatchResult, at: float) -> None:
        batch = self._batches.finish(frame, at)
        if batch is None:
            self._kill_untrusted("the guest answered a batch that it does not have")
            return
        self._busy_inputs -= 1
        is_preempted = any(call.is_preempted for call in batch.items)
        if frame.whole and self._spec.idempotent and batch.can_split and not is_preempted:
            for call in batch.items:  # waiting items do not run meanwhile
                del self._running[call.call_id]
                self._streams.forget(call)
            self._io.refund(batch.items)
            self._run_next_alone(deque(batch.items), at)
        else:
            for call, result in zip(batch.items, frame.results, strict=True):
                del self._running[call.call_id]
                self._answer(call, result, frame, at)
            if all(result.outcome is Outcome.OK for result in frame.results):
                self._times.observe(batch.method, at - batch.items[0].started_at)
                self._io.record_batch(len(batch.items), (at - batch.items[0].started_at) * 1000.0)
            if batch.rest:
                self._run_next_alone(batch.rest, at)
        self.pump(at)

    def on_chunk(self, frame: guest.ChunkOut, at: float) -> None:
        if fault := self._streams.relay(self._running.get(frame.call_id), frame.seq, (frame.data,), at):
            self._kill_untrusted(fault)

    def on_chunks(self, frame: guest.ChunksOut, at: float) -> None:
        if fault := self._streams.relay_runs(self._running, frame.runs, at):
            self._kill_untrusted(fault)

    def on_checkpoint(self, frame: guest.CheckpointOut, at: float) -> None:
        if fault := self._streams.relay_checkpoint(self._running.get(frame.call_id), frame, at):
            self._kill_untrusted(fault)

    def halt(self) -> None:
        """Give the guest nothing more: its container is killed."""
        self._halted = True

    def on_death(self, reason: str, at: float) -> None:
        """End each held call of a dead container, unless its answer is being uploaded."""
        self._queue.clear()
        self._running.clear()
        self._batches = DynamicBatches(self._spec)
        for call in list(self._held.values()):
            if call.phase is not CallPhase.UPLOADING:
                outcome = call.decide(Outcome.DIED, reason=reason)
                call.spent = self._io.finish(call, outcome) if call.was_started else None
                self._end(call, outcome, at)

    # -- from the clock -----------------------------------------------------------------------------------------

    def pump(self, at: float) -> None:
        while self._busy_inputs < self._max_inputs and not self._halted:
            batch = self._due_batch(at) if self.is_batching else None
            if batch is not None:
                self._start_batch(batch, at)
            elif self._queue:
                self._start(self._queue.popleft(), at)
            else:
                break
        if self.is_batching:
            due_at = self._batches.next_due_at(at) if self._busy_inputs < self._max_inputs else None
            self._io.pump_at(due_at, self.pump)

    def next_limit_at(self, at: float) -> float:
        """When `check_limits` may have something to do: now, while calls wait or repeat what is billed elsewhere."""
        if not self._running:
            return at if self._held else math.inf
        if len(self._held) > len(self._running) or self._streams.is_repeating:
            return at
        return next(iter(self._running.values())).started_at + self._spec.timeout

    def check_limits(self, at: float) -> None:
        """Refuse calls that did not start in time; kill the container if one runs too long. See `next_limit_at`."""
        if not self._held:
            return
        self._streams.end_repeats(at)
        if len(self._held) > len(self._running):
            late = [call for call in self._held.values() if not call.was_started and call.start_deadline_at < at]
            for call in late:
                self._dequeue(call)
                self._refuse(call, Refusal.EXPIRED)
        timeout = self._spec.timeout
        oldest = next(iter(self._running.values()), None)
        if oldest is not None and at - oldest.started_at > timeout:
            for call in self._running.values():
                if at - call.started_at > timeout:
                    call.decide(Outcome.TIMEOUT, reason=f"the function ran past its timeout of {timeout:g} s")
            self._io.kill(f"call {oldest.run.call_id} ran past its timeout of {timeout:g} s")

    def cancel_abandoned(self, at: float) -> None:
        """Cancel streams without a reader and calls long past their deadline. Once a second."""
        for call_id, call in list(self._held.items()):
            if self._streams.is_stalled(call, at):
                self.cancel(call_id, f"nothing of its stream was read for {STALLED_S:g} s", at)
            elif at - call.deadline_at > ORPHANED_S:
                self.cancel(call_id, "its deadline has passed", at)

    def end_abandoned(self, at: float) -> None:
        """End the container if the guest goes on with work that nobody wants. Once a second.

        Calls that are wanted end first: until then it only takes no new ones.
        """
        overdue = overdue_work(self._running.values(), self._batches.is_batched, self._stop_grace_s, at)
        if overdue is None or self._halted:
            return
        reason = f"call {overdue.call_id} had not ended {self._stop_grace_s:g} s after it was given up"
        if overdue.is_alone:
            self._io.kill(reason)
        else:
            self._io.retire(reason)

    # -- steps --------------------------------------------------------------------------------------------------

    def _kill_untrusted(self, reason: str) -> None:
        if not self._halted:
            self._io.kill(reason)

    def _enqueue(self, call: AcceptedCall, at: float) -> None:
        if not self.is_batching or not self._batches.add(call, at):
            self._queue.append(call)
        self.pump(at)

    def _start(self, call: AcceptedCall, at: float) -> None:
        if not self._try_start(call, at):
            return
        self._report_start(call)
        run = call.run
        self._io.send_to_guest(
            guest.Invoke(
                call_id=call.call_id,
                method=run.method,
                input=call.input,
                window=run.window,
                resume=start_of(run),
                facts=run.facts,
                traceparent=run.traceparent,
            )
        )
        self._streams.begin(call, at)
        call.input = b""
        self._busy_inputs += 1

    def _start_batch(self, batch: DynamicBatch, at: float) -> None:
        batch.items = [call for call in batch.items if self._try_start(call, at)]
        if not batch.items:
            self._batches.discard(batch)
            return
        size = len(batch.items)
        for call in batch.items:
            call.batch_size, call.batch, call.mates = size, batch.number if size > 1 else 0, batch.items
            self._report_start(call)
            self._streams.begin(call, at)
        self._send_batch(batch)

    def _due_batch(self, at: float) -> DynamicBatch | None:
        return self._batches.pop_due(at, before=self._queue[0].ready_at if self._queue else at)

    def _try_start(self, call: AcceptedCall, at: float) -> bool:
        """Start the call, if it may."""
        refusal = Refusal.EXPIRED if call.start_deadline_at < at else self._io.start(call, at)
        if refusal is None:
            self._running[call.call_id] = call
            call.nth = self._begun = self._begun + 1
            return True
        if refusal is Refusal.GONE:
            del self._held[call.call_id]
            self._io.release(call)
        else:
            self._refuse(call, refusal)
        return False

    def _report_start(self, call: AcceptedCall) -> None:
        """Tell its origin, if that asks, before the guest gets the call."""
        if call.run.tell_start:
            self._io.send(call.gateway, call.begun(self._io.price))

    def _run_next_alone(self, rest: deque[AcceptedCall], at: float) -> None:
        while rest:
            call = rest.popleft()
            if call.outcome is None:
                call.started_at, call.batch, self._running[call.call_id] = at, 0, call
                self._io.restart(call)
                self._report_start(call)
                self._send_batch(self._batches.begin_single(call, rest))
                return
            self._complete(call, call.outcome, 0, at, started=True)

    def _send_batch(self, batch: DynamicBatch) -> None:
        items = tuple((call.call_id, call.input) for call in batch.items)
        traces = tuple(call.run.traceparent for call in batch.items)
        if not any(traces):  # as nearly always
            traces = ()
        frame = guest.InvokeBatch(batch=batch.number, method=batch.method, items=items, traceparents=traces)
        self._io.send_to_guest(frame)
        self._busy_inputs += 1

    def _dequeue(self, call: AcceptedCall) -> None:
        if call.phase is CallPhase.WAITING and not self._batches.remove(call):
            self._queue.remove(call)

    def _refuse(self, call: AcceptedCall, reason: Refusal) -> None:
        run = call.run
        del self._held[run.call_id]
        self._io.release(call)
        self._io.send(
            run.gateway,
            Refused(call_id=run.call_id, grant_number=run.grant_number, container=self._container, reason=reason),
        )

    def _answer(
        self,
        call: AcceptedCall,
        answer: guest.Result | guest.GuestItemResult,
        frame: guest.Result | guest.BatchResult,
        at: float,
    ) -> None:
        """Take the guest's answer, which came in `frame`; BAD_OUTPUT for an outcome that only the agent may give."""
        started = frame.started or call.outcome is None
        if answer.units and (why := units_fault(answer.units)):
            outcome = call.decide(Outcome.BAD_OUTPUT, error=RemoteError("ValueError", f"the guest counted: {why}"))
        elif answer.outcome in GUEST_OUTCOMES:
            outcome = call.decide(answer.outcome, error=answer.error, output=answer.output)
            # Where a stream goes on, all of it is counted.
            call.units = None if call.goes_on_elsewhere else answer.units
        else:
            error = RemoteError("ValueError", f"the guest answered with the outcome {answer.outcome.value}")
            outcome = call.decide(Outcome.BAD_OUTPUT, error=error)
        self._complete(call, outcome, frame.execute_ns, at, started=started)

    def _complete(self, call: AcceptedCall, outcome: Outcome, execute_ns: int, at: float, *, started: bool) -> None:
        """End a call that the guest has ended. The agent's clock bounds the time that the guest claims."""
        if call.is_over:
            return
        claimed_ms, most_ms = execute_ns / 1e6, (at - call.started_at) * 1e3
        call.execute_ms = whole_us(claimed_ms if claimed_ms < most_ms else most_ms)
        if call.repeats_until is not None and outcome is not Outcome.DIED:
            self._streams.end_repeat(call)
        call.spent = self._io.finish(call, outcome)
        if outcome is Outcome.OK and len(call.output) > INLINE_BYTES:
            call.phase = CallPhase.UPLOADING
            self._io.upload_output(call, self.on_upload)
        else:
            never_began = not started and (call.is_preempted or outcome is Outcome.CANCELLED)
            self._end(call, outcome, at, is_started=not never_began)

    def _cut_off(self, call: AcceptedCall, at: float) -> None:
        """End a call that the guest goes on with."""
        outcome = call.decide(Outcome.DIED)
        call.spent = self._io.finish(call, outcome)
        call.is_over = True
        self._end(call, outcome, at)

    def _end(
        self,
        call: AcceptedCall,
        outcome: Outcome,
        at: float,
        *,
        is_started: bool | None = None,
        answer_size: int = 0,
    ) -> None:
        call_id = call.call_id
        del self._held[call_id]
        self._streams.forget(call)
        self._io.release(call)
        ended = Ended(
            call_id=call_id,
            grant_number=call.grant_number,
            container=self._container,
            outcome=outcome,
            started=call.was_started if is_started is None else is_started,
            output=call.output,
            answer_size=answer_size,
            error=truncated_error(call.error) if call.error else None,
            reason=call.reason,
            last_seq=call.sent_seq,
            spent=call.spent,
            stages=call.stages(at),
            units=call.units,
            mates=self._batches.mates_of(call, outcome, at) if call.batch_size > 1 else (),
            preempted=call.is_preempted and outcome is Outcome.DIED,
            by_tenant=call.is_own_death,
            nth=call.nth,
            batch=call.batch,
        )
        self._io.send(call.run.gateway, ended)
