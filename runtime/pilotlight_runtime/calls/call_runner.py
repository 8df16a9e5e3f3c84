"""The calls of one ready container: events in, frames out, through one small port. Plain functions, no waiting.

    accepted --> (FETCHING) --> WAITING --> RUNNING --> (LEAVING) --> Ended
                     |             |           |
                     +-- expired --+           +-- the guest answers exactly once; a verdict overrules its answer
                     +- cancelled -+

A call that is not RUNNING never started: it ends with `started=False` or is refused, and may run elsewhere. The guest
works on at most `max_inputs` things at a time; a batch is one of them.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from pilotlight_core.model.messages.agent_messages import (
    BodyRef,
    CallFrame,
    Chunk,
    Ended,
    Outcome,
    Refusal,
    Refused,
    RemoteError,
    Run,
    Spent,
    Started,
)
from pilotlight_core.model.spec import FunctionSpec, Mode
from pilotlight_runtime.calls.accepted_call import AcceptedCall, CallOutcome, CallPhase
from pilotlight_runtime.calls.batch_queue import DynamicBatch, DynamicBatches
from pilotlight_runtime.guest import frames as guest

INLINE_BYTES = 256 * 1024
"""A larger answer goes to the origin's internal listener: frames share one connection."""
STALLED_S = 60.0
"""A stream that may send nothing more, and of which nothing is read for so long, has no reader."""
ORPHANED_S = 10.0
"""An origin that has not cancelled a call so long after its deadline is gone."""

GUEST_OUTCOMES = frozenset((Outcome.OK, Outcome.RAISED, Outcome.BAD_INPUT, Outcome.BAD_OUTPUT, Outcome.CANCELLED))
TYPE_CHARS = 200
MESSAGE_CHARS = 4_000
TRACEBACK_CHARS = 32_000
"""What is kept of an exception's text, which is the tenant's to write."""


class RunnerIO(Protocol):
    """What a runner asks of the world. None of it waits."""

    def tell(self, gateway: str, frame: CallFrame) -> None:
        """Send a frame to an origin."""

    def command(self, frame: guest.GuestFrame) -> None:
        """Send a frame to the guest."""

    def fetch(self, held: AcceptedCall) -> None:
        """Get the input; `CallRunner.fetched` is called later, unless the call is dropped before."""

    def leave(self, held: AcceptedCall) -> None:
        """Take the verdict's output to the origin; `CallRunner.left` is called later."""

    def waits(self, held: AcceptedCall) -> None:
        """It was accepted and could not be started at once; `start` or `freed` follows."""

    def start(self, held: AcceptedCall, at: float) -> Refusal | None:
        """Asked right before the guest gets it. None: it counts as started; GONE: somebody has ended it already."""

    def spent(self, held: AcceptedCall, outcome: Outcome) -> Spent | None:
        """The guest has ended working on it."""

    def ran(self, batch: int, ms: float) -> None:
        """So many calls were worked on at once, and that went well."""

    def freed(self, held: AcceptedCall) -> None:
        """Its slot is free; its verdict, if it was started, says how it ended."""

    def wake(self, at: float | None) -> None:
        """Call `CallRunner.pump` at that instant, and at no other."""

    def kill(self, reason: str) -> None:
        """End the container: it cannot be trusted, or cannot be stopped otherwise."""


class CallRunner:
    """One container's calls, from acceptance to their last frame. `at` is the present instant everywhere."""

    def __init__(self, spec: FunctionSpec, container: str, rim: RunnerIO) -> None:
        self._spec = spec
        self._container = container
        self._rim = rim
        self._streams = frozenset(m.name for m in spec.methods if m.mode is Mode.GENERATOR)
        self._batches = DynamicBatches(spec)
        self._gathers = bool(self._batches)
        self._held: dict[str, AcceptedCall] = {}
        self._queue: deque[AcceptedCall] = deque()
        self._running: dict[str, AcceptedCall] = {}  # in the order of their start
        self._working = 0  # calls and batches that the guest has
        self._halted = False

    # -- how it is ----------------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether it holds no call at all."""
        return not self._held

    @property
    def held(self) -> tuple[str, ...]:
        """The calls that it holds."""
        return tuple(self._held)

    @property
    def running(self) -> int:
        """How many calls the guest has."""
        return len(self._running)

    @property
    def batch_room(self) -> int:
        """Items that the batch now forming could still take."""
        return self._batches.room() if self._gathers else 0

    def only_call(self) -> str:
        """The one call that the guest works on; "" when it is none or several."""
        return next(iter(self._running)) if len(self._running) == 1 else ""

    def holds(self, call: str) -> bool:
        """Whether a run of this call is here."""
        return call in self._held

    def calls_of(self, gateway: str) -> list[str]:
        """The calls held for an origin."""
        return [call for call, held in self._held.items() if held.run.gateway == gateway]

    # -- from the origin ----------------------------------------------------------------------------------------

    def take(self, run: Run, at: float, received: float) -> None:
        """Hold an accepted call; its times count from `received`."""
        held = AcceptedCall(
            run=run,
            accepted=at,
            start_by=received + run.start_within_ms / 1000,
            ends_by=received + run.timeout_ms / 1000,
            input=run.input,
            ready=at,
        )
        self._held[run.call] = held
        if run.body is None:
            self._wait(held, at)
        else:
            held.phase = CallPhase.FETCHING
            self._rim.fetch(held)
        if not held.was_started and run.call in self._held:
            self._rim.waits(held)

    def fetched(self, held: AcceptedCall, data: bytes | None, at: float) -> None:
        """Its large input is here; None: it cannot be had."""
        if self._held.get(held.run.call) is not held:
            return
        if data is None:
            self._refuse(held, Refusal.UNREADABLE)
            return
        held.input, held.ready, held.phase = data, at, CallPhase.WAITING
        self._wait(held, at)

    def cancel(self, call: str, reason: str, at: float) -> None:
        """Nobody wants its answer: removed if it has not started, else dropped when the guest has ended it."""
        held = self._held.get(call)
        if held is None or held.phase is CallPhase.LEAVING:
            return
        verdict = CallOutcome(outcome=Outcome.CANCELLED, reason=reason)
        if held.phase is CallPhase.RUNNING:
            self._overrule(held, verdict)
        else:
            self._withdraw(held)
            self._end(held, verdict, None, at)

    def window(self, call: str, upto: int, at: float) -> None:
        """The origin has passed on a stream's chunks up to `upto`."""
        held = self._running.get(call)
        if held is not None and held.upto < upto <= held.last_seq:
            held.upto, held.read_at = upto, at
            self._rim.command(guest.WindowUpdate(call=call, upto=upto))

    def left(self, held: AcceptedCall, at: float, *, taken: bool) -> None:
        """Its large answer is with the origin, or could not be taken there."""
        size = len(held.verdict.output) if held.verdict else 0
        if taken:
            self._end(held, CallOutcome(outcome=Outcome.OK), held.spent, at, answer_size=size)
        else:
            error = RemoteError("AnswerNotTaken", _not_taken(size, held.run.answer))
            self._end(held, CallOutcome(outcome=Outcome.BAD_OUTPUT, error=error), held.spent, at)

    def drain(self, at: float) -> None:
        """No more calls come."""
        self._batches.expect_nobody()
        self.pump(at)

    # -- from the guest -----------------------------------------------------------------------------------------

    def answered(self, frame: guest.Result, at: float) -> None:
        """The guest has ended a call."""
        held = self._running.get(frame.call)
        if held is None or self._batches.has(held):
            self._distrust("the guest answered a call that it does not have")
            return
        beside = len(self._running)
        del self._running[frame.call]
        self._working -= 1
        verdict = outcome_of_frame(frame)
        self._conclude(held, verdict, frame.execute_ns, at, started=frame.started or held.verdict is None)
        if verdict.outcome is Outcome.OK:
            self._rim.ran(beside, held.execute_ms)
        self.pump(at)

    def batch_answered(self, frame: guest.BatchResult, at: float) -> None:
        """The guest has ended a batch, or one item of a batch that raised as a whole."""
        batch = self._batches.answered(frame, at)
        if batch is None:
            self._distrust("the guest answered a batch that it does not have")
            return
        self._working -= 1
        if frame.whole and self._spec.idempotent and batch.can_split:
            for held in batch.items:  # those that wait for their turn do not run meanwhile
                del self._running[held.run.call]
            self._run_alone(deque(batch.items), at)
        else:
            for held, result in zip(batch.items, frame.results, strict=True):
                del self._running[held.run.call]
                self._conclude(
                    held, outcome_of_frame(result), frame.execute_ns, at, started=frame.started or held.verdict is None
                )
            if all(result.outcome is Outcome.OK for result in frame.results):
                self._rim.ran(len(batch.items), batch.items[0].execute_ms)
            if batch.rest:
                self._run_alone(batch.rest, at)
        self.pump(at)

    def chunk(self, frame: guest.ChunkOut, at: float) -> None:
        """One piece of a stream, passed on unless its call is decided. Its window binds the guest all the same."""
        held = self._running.get(frame.call)
        if held is None or held.run.method not in self._streams:
            self._distrust("the guest streamed for a call that does not stream")
            return
        run = held.run
        if frame.seq != held.heard_seq + 1 or frame.seq > held.upto + run.window:
            self._distrust("the guest streamed out of order or beyond its window")
            return
        if len(frame.data) > guest.MAX_CHUNK:
            self._distrust(f"the guest sent a chunk of {len(frame.data)} bytes, {guest.MAX_CHUNK} is the most")
            return
        held.heard_seq = frame.seq
        if held.verdict is not None:
            return
        held.last_seq = frame.seq
        if frame.seq == held.upto + run.window:
            held.read_at = at
        self._rim.tell(run.gateway, Chunk(call=run.call, grant=run.grant, seq=frame.seq, data=frame.data))

    def halt(self) -> None:
        """The container is being killed: the guest gets nothing more, so that what waits can go elsewhere."""
        self._halted = True

    def died(self, reason: str, at: float) -> None:
        """The container is gone: every call that it held ends now; answers on their way arrive all the same."""
        self._queue.clear()
        self._running.clear()
        self._batches = DynamicBatches(self._spec)
        for held in list(self._held.values()):
            if held.phase is not CallPhase.LEAVING:
                verdict = held.verdict or CallOutcome(outcome=Outcome.DIED, reason=reason)
                spent = self._rim.spent(held, verdict.outcome) if held.was_started else None
                self._end(held, verdict, spent, at)

    # -- from the clock -----------------------------------------------------------------------------------------

    def pump(self, at: float) -> None:
        """Give the guest what it has room for, the oldest first."""
        while self._working < self._spec.max_inputs and not self._halted:
            batch = self._due_batch(at) if self._gathers else None
            if batch is not None:
                self._start_batch(batch, at)
            elif self._queue:
                self._start(self._queue.popleft(), at)
            else:
                break
        if self._gathers:
            self._rim.wake(self._batches.wake(at) if self._working < self._spec.max_inputs else None)

    def sweep(self, at: float) -> None:
        """Every few 10 ms: refuse what could not start in time, kill the container for what runs too long."""
        if len(self._held) > len(self._running):
            late = [held for held in self._held.values() if not held.was_started and held.start_by < at]
            for held in late:
                self._withdraw(held)
                self._refuse(held, Refusal.EXPIRED)
        timeout = self._spec.timeout
        oldest = next(iter(self._running.values()), None)
        if oldest is not None and at - oldest.started > timeout:
            for held in self._running.values():
                if at - held.started > timeout:
                    held.verdict = held.verdict or CallOutcome(outcome=Outcome.TIMEOUT, reason=_late(timeout))
            self._rim.kill(f"call {oldest.run.call} ran past its timeout of {timeout:g} s")

    def review(self, at: float) -> None:
        """Once a second: cancel what nobody can be waiting for any more."""
        for call, held in list(self._held.items()):
            full = held.run.method in self._streams and held.last_seq >= held.upto + held.run.window
            if full and at - held.read_at > STALLED_S:
                self.cancel(call, f"nothing of its stream was read for {STALLED_S:g} s", at)
            elif at - held.ends_by > ORPHANED_S:
                self.cancel(call, "its deadline has passed", at)

    # -- steps --------------------------------------------------------------------------------------------------

    def _distrust(self, reason: str) -> None:
        """The guest breaks the rules. What it has sent until it is dead is not worth a second kill."""
        if not self._halted:
            self._rim.kill(reason)

    def _wait(self, held: AcceptedCall, at: float) -> None:
        if not self._gathers or not self._batches.add(held, at):
            self._queue.append(held)
        self.pump(at)

    def _start(self, held: AcceptedCall, at: float) -> None:
        if not self._may_start(held, at):
            return
        run = held.run
        self._rim.command(guest.Invoke(call=run.call, method=run.method, input=held.input, window=run.window))
        held.input = b""
        self._working += 1

    def _start_batch(self, batch: DynamicBatch, at: float) -> None:
        batch.items = [held for held in batch.items if self._may_start(held, at)]
        if not batch.items:
            self._batches.dropped(batch)
            return
        for held in batch.items:
            held.batch_size = len(batch.items)
        self._send_batch(batch)

    def _due_batch(self, at: float) -> DynamicBatch | None:
        return self._batches.take(at, before=self._queue[0].ready if self._queue else at)

    def _may_start(self, held: AcceptedCall, at: float) -> bool:
        """Whether it is started now; if so an origin that listens hears of it before the guest does."""
        run = held.run
        refusal = Refusal.EXPIRED if held.start_by < at else self._rim.start(held, at)
        if refusal is Refusal.GONE:
            del self._held[run.call]
            self._rim.freed(held)
        elif refusal is not None:
            self._refuse(held, refusal)
        else:
            held.phase, held.started = CallPhase.RUNNING, at
            self._running[run.call] = held
            if run.tell_start:
                self._rim.tell(run.gateway, Started(call=run.call, grant=run.grant))
        return refusal is None

    def _run_alone(self, rest: deque[AcceptedCall], at: float) -> None:
        """The next item of a batch that raised as a whole, by itself; those that nobody wants any more are passed."""
        while rest:
            held = rest.popleft()
            if held.verdict is None:
                held.started, self._running[held.run.call] = at, held
                self._send_batch(self._batches.alone(held, rest))
                return
            self._conclude(held, held.verdict, 0, at)

    def _send_batch(self, batch: DynamicBatch) -> None:
        items = tuple((held.run.call, held.input) for held in batch.items)
        self._rim.command(guest.InvokeBatch(batch=batch.number, method=batch.method, items=items))
        self._working += 1

    def _withdraw(self, held: AcceptedCall) -> None:
        """Take a call that has not started out of wherever it waits."""
        if held.phase is CallPhase.WAITING and not self._batches.remove(held):
            self._queue.remove(held)

    def _overrule(self, held: AcceptedCall, verdict: CallOutcome) -> None:
        if held.verdict is None:
            held.verdict = verdict
            self._rim.command(guest.CancelCall(call=held.run.call))

    def _refuse(self, held: AcceptedCall, reason: Refusal) -> None:
        run = held.run
        del self._held[run.call]
        self._rim.freed(held)
        self._rim.tell(run.gateway, Refused(call=run.call, grant=run.grant, container=self._container, reason=reason))

    def _conclude(
        self, held: AcceptedCall, verdict: CallOutcome, execute_ns: int, at: float, *, started: bool = True
    ) -> None:
        """The guest is done with it. What it says of the time is its word, so our own stopwatch bounds it."""
        verdict = held.verdict or verdict
        held.execute_ms = round(max(0.0, min(execute_ns / 1e6, (at - held.started) * 1000)), 3)
        spent = self._rim.spent(held, verdict.outcome)
        if verdict.outcome is Outcome.OK and len(verdict.output) > INLINE_BYTES:
            held.verdict, held.spent, held.phase = verdict, spent, CallPhase.LEAVING
            self._rim.leave(held)
        else:
            self._end(held, verdict, spent, at, started=started or verdict.outcome is not Outcome.CANCELLED)

    def _end(
        self,
        held: AcceptedCall,
        verdict: CallOutcome,
        spent: Spent | None,
        at: float,
        *,
        started: bool | None = None,
        answer_size: int = 0,
    ) -> None:
        run, held.verdict = held.run, verdict
        del self._held[run.call]
        self._rim.freed(held)
        ended = Ended(
            call=run.call,
            grant=run.grant,
            container=self._container,
            outcome=verdict.outcome,
            started=held.was_started if started is None else started,
            output=b"" if answer_size else verdict.output,
            answer_size=answer_size,
            error=truncated_error(verdict.error) if verdict.error else None,
            reason=verdict.reason,
            last_seq=held.last_seq,
            spent=spent,
            stages=held.stages(at),
        )
        self._rim.tell(run.gateway, ended)


def outcome_of_frame(answer: guest.Result | guest.GuestItemResult) -> CallOutcome:
    """What a guest says of a call. How its container ended is not for it to say."""
    if answer.outcome not in GUEST_OUTCOMES:
        error = RemoteError("ValueError", f"the guest answered with the outcome {answer.outcome.value}")
        return CallOutcome(outcome=Outcome.BAD_OUTPUT, error=error)
    return CallOutcome(outcome=answer.outcome, error=answer.error, output=answer.output)


def truncated_error(error: RemoteError) -> RemoteError:
    """`error` with texts that fit a frame: the head of the type and the message, the end of the traceback."""
    return RemoteError(error.type[:TYPE_CHARS], error.message[:MESSAGE_CHARS], error.traceback[-TRACEBACK_CHARS:])


def _late(timeout: float) -> str:
    return f"the function ran past its timeout of {timeout:g} s"


def _not_taken(size: int, answer: BodyRef | None) -> str:
    most = answer.size if answer is not None else 0
    if size > most > 0:
        return f"an answer of {size} bytes is too large, {most} are the most: answer in parts, as a generator"
    return f"the gateway did not take an answer of {size} bytes"
