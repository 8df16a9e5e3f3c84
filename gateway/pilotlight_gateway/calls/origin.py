"""The origin of one live call: its state machine, from the first enqueue to the answer.

              enqueue                 grant                    Started, Chunk
    (begin) ────────────▶ QUEUED ──────────────▶ SENT ─────────────────────────▶ RUNNING
                          ▲  ▲  ▲                 │  │                            │  │
                 backoff  │  │  └─────────────────┘  │                            │  │
              WAITING ────┘  │   never started       │ Ended, or lost             │  │
                 ▲           └───────────────────────┼────────────────────────────┘  │
                 │                      run again    ▼                               ▼
                 └──────── code raised, retries=  ◀──┴───────────────────────▶     DONE

Only the origin sends the call to an agent, retries it and cancels it. Its rules:

1. At most one grant is in use. A grant is declined while another is in use, or if its number is not the highest so
   far. Frames of other grants than the one in use are ignored.
2. A call that provably never started may go elsewhere, `MAX_PLACEMENTS` times. Proof is one of: no grant was used; the
   agent or its successor said so (`Refused`, or `Ended` with `started=False`); the bus said that there is no listener.
   Silence is no proof: a run that was sent counts as started.
3. A call that counts as started and was lost with its container or node is run again only if the function is
   idempotent, at most `MAX_RERUNS` times; otherwise it fails with `container_died`.
4. A call whose code raised is run again `retries=` times, after a backoff, if the deadline leaves time.
5. Once a chunk was relayed, a call is never run again: its caller has a part of the first answer.
6. The deadline ends everything, with a `Cancel` to the agent that has the call.

Events are method calls with the instant `at`; they return `effects`. The driver calls `tick` at `wake_at`. After
`CallResult` or `FailCall`, late frames only settle the home's account.
"""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec

from pilotlight_core.model.errors import Cancelled, ContainerDied, DeadlineExceeded, PilotlightError, Unavailable
from pilotlight_core.model.messages.call_messages import (
    CallFrame,
    Cancel,
    Chunk,
    Ended,
    Grant,
    Outcome,
    Refusal,
    Refused,
    Spent,
    Started,
    Window,
)
from pilotlight_core.model.messages.scheduling import Dropped, Enqueue, HandBack, Settle, Withdraw
from pilotlight_core.model.messages.usage_facts import tokens_of
from pilotlight_core.model.spec import MAX_RETRY_PAUSE_S
from pilotlight_gateway.calls.call_failures import died, dropped_error, failure
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.effects import (
    Effect,
    FailCall,
    RelayChunk,
    ReportStage,
    SendControl,
    SendRun,
)
from pilotlight_gateway.calls.prepared_call import WINDOW, PreparedCall
from pilotlight_gateway.calls.stopwatch import Stopwatch
from pilotlight_gateway.limits.call_usage import plausible

MAX_PLACEMENTS = 10
"""Containers that may refuse a call before it fails."""
MAX_RERUNS = 2
"""Of a lost idempotent call: three starts in all."""
FIRST_BACKOFF_S = 0.1
"""Before retry n of a call that raised: 0.1 s x 2^n, at most MAX_RETRY_PAUSE_S."""
REPEAT_EVERY_S = 2.0
"""A waiting call is enqueued again this often: it, or its grant, may have been lost."""
UNREAD_CHUNKS = 256
UNREAD_BYTES = 2 * 2**20
"""Chunks that the caller has not read: beyond either, the stream gets no `Window`."""
LOST_PART = "A part of the stream was lost on its way."
SHORTAGE_S = 5.0
"""A shortage that was not repeated for so long has passed."""
LAST_WORDS_S = 1.0
"""Several messages report a death; this long the origin waits for the one that says how the call ended."""


class OriginState(StrEnum):
    """Where a call is."""

    QUEUED = "queued"  # at the home
    WAITING = "waiting"  # for the end of a backoff
    SENT = "sent"  # on its way to a container, or in its batch
    RUNNING = "running"  # the container has begun
    DONE = "done"


class Origin:
    """One live call."""

    __slots__ = (
        "_cold_start", "_doubt", "_epoch", "_grant", "_last_number", "_placed", "_placements", "_raised", "_reason",
        "_repeat_at", "_reruns", "_resume_at", "_seq", "_short_at", "_shortage", "_spent", "_unread_bytes",
        "_unread_chunks", "_watch", "_window_sent", "call", "cost", "gateway", "lost_starts", "starts", "state",
        "tokens",
    )  # fmt: skip

    def __init__(self, call: PreparedCall, gateway: str, at: float) -> None:
        self.call = call
        self.gateway = gateway
        """The process that holds the caller."""
        self.state = OriginState.QUEUED
        self._watch = Stopwatch(at)
        self._grant: Grant | None = None
        self._last_number = 0
        """The highest grant number that was used."""
        self._epoch = 0
        """Of the present home."""
        self._placed = False
        self._placements = 0
        self._reruns = 0
        self._raised = 0
        self.starts = 0
        self.lost_starts = 0
        """Starts without a reported cost."""
        self.cost = 0.0
        self.tokens = 0
        """GPU-milliseconds of the other starts."""
        self._spent: Spent | None = None
        self._seq = 0
        """Of the last chunk that was relayed."""
        self._window_sent = 0
        self._unread_chunks = 0
        self._unread_bytes = 0
        self._cold_start: dict[str, float] | None = None
        self._repeat_at = at
        self._resume_at = call.deadline_at
        self._doubt: float | None = None
        """When the call counts as lost, unless an agent reports its end; set when its container or node is gone."""
        self._reason = ""
        self._shortage = ""
        """Why its version had no container at `_short_at`."""
        self._short_at = -math.inf

    # -- how it is -----------------------------------------------------------------------------------------------

    @property
    def grant(self) -> Grant | None:
        """The grant in use; None while the call waits."""
        return self._grant

    @property
    def wake_at(self) -> float:
        """When `tick` is due."""
        if self.state is OriginState.QUEUED:
            return min(self.call.deadline_at, self._repeat_at)
        if self.state is OriginState.WAITING:
            return min(self.call.deadline_at, self._resume_at)
        return self.call.deadline_at if self._doubt is None else min(self.call.deadline_at, self._doubt)

    # -- the home's side -----------------------------------------------------------------------------------------

    def begin(self, at: float) -> list[Effect]:
        """The call begins."""
        return [*self._stage("queued", at), self._enqueue(at, admitted=False)]

    def placed(self) -> None:
        """A home has got the call: no home need admit it again."""
        self._placed = True

    def refused_entry(self, error: PilotlightError) -> list[Effect]:
        """The home did not admit the call."""
        return self._fail(error) if self.state is OriginState.QUEUED else []

    def dropped(self, dropped: Dropped) -> list[Effect]:
        """The home dropped the call."""
        return self._fail(dropped_error(dropped)) if self.state is OriginState.QUEUED else []

    def home_changed(self, epoch: int, at: float) -> list[Effect]:
        """Another home acts from now on: a waiting call is enqueued there."""
        self._epoch = max(self._epoch, epoch)
        return [self._enqueue(at, admitted=self._placed)] if self.state is OriginState.QUEUED else []

    def note_shortage(self, reason: str, at: float) -> None:
        """The fleet, or a limit, has no container for its version; said each tick while this lasts."""
        self._shortage, self._short_at = reason, at

    def granted(self, grant: Grant, at: float) -> list[Effect]:
        """The home has granted the call a container."""
        if grant == self._grant:
            return []
        if self.state is not OriginState.QUEUED or grant.epoch < self._epoch:
            return [_decline(grant)]
        if grant.grant_number <= self._last_number:
            # Its home did not know; now it does, and the next grant is higher.
            return [_decline(grant), self._enqueue(at, admitted=True)]
        if at >= self.call.deadline_at:
            return [_decline(grant), *self.tick(at)]
        self.state = OriginState.SENT
        self._grant = grant
        self._last_number = grant.grant_number
        self._epoch = grant.epoch
        self._watch.granted(at, grant.start_ms)
        if grant.start_ms:
            self._cold_start = grant.timeline
        return [SendRun(grant.node, grant.instance, self.call.run(grant, at, self.gateway))]

    def uses(self, grant_number: int) -> bool:
        """Whether the grant is in use."""
        return self._grant is not None and self._grant.grant_number == grant_number

    def withheld(self, grant_number: int) -> list[Effect]:
        """The grant must not be used: the start hook refused it."""
        grant = self._grant
        if grant is None or grant.grant_number != grant_number or self.state is not OriginState.SENT:
            return []
        self._release()
        return [_decline(grant), *self._fail(Cancelled("The call was given up before it was sent."))]

    # -- the agent's side ----------------------------------------------------------------------------------------

    def no_responders(self, grant_number: int, at: float) -> list[Effect]:
        """The bus found no listener for the grant's run."""
        grant = self._grant
        if grant is None or grant.grant_number != grant_number or self.state is not OriginState.SENT:
            return []
        return self._elsewhere(grant, Refusal.GONE, at)

    def frame(self, node: str, frame: CallFrame, at: float) -> list[Effect]:
        """The agent of `node` has sent a frame of the call; if the call has a grant, it is for that node."""
        grant = self._grant
        if grant is None or frame.grant_number != grant.grant_number:
            # Of an older grant, or of a call without a caller: only the slot matters.
            return [settlement_of(node, frame)] if isinstance(frame, Ended) and self.state is OriginState.DONE else []
        match frame:
            case Started():
                return self._started(at)
            case Chunk():
                return self._started(at) + self._chunk(grant, frame)
            case Refused():
                return self._refused(grant, frame, at)
            case Ended():
                return self._ended(grant, frame, at)

    def was_read(self, size: int) -> list[Effect]:
        """The caller has read a chunk of `size` bytes."""
        self._unread_chunks -= 1
        self._unread_bytes -= size
        return self._go_on()

    def node_gone(self, node: str, instance: str, reason: str, at: float) -> list[Effect]:
        """An agent is gone, or counts as gone."""
        grant = self._grant
        if grant is None or (grant.node, grant.instance) != (node, instance):
            return []
        # A run that was just sent may reach the node's next agent, which knows that it never started.
        return self._lost(reason, at) if self.state is OriginState.RUNNING else self._give_up_soon(reason, at)

    def container_gone(self, node: str, container: str, reason: str, at: float) -> list[Effect]:
        """A container of `node` is gone; its agent lives, and usually reports the end of the call."""
        grant = self._grant
        ours = grant is not None and (grant.node, grant.container) == (node, container)
        return self._give_up_soon(reason, at) if ours else []

    # -- the caller's side, and time -----------------------------------------------------------------------------

    def cancel(self, reason: str = "The call was cancelled.") -> list[Effect]:
        """The caller wants no answer any more."""
        return self._stop("cancelled") + self._fail(Cancelled(reason)) if self.state is not OriginState.DONE else []

    def tick(self, at: float) -> list[Effect]:
        """`wake_at` has come."""
        if self.state is OriginState.DONE:
            return []
        if at >= self.call.deadline_at:
            return self._stop("deadline") + self._fail(self._too_late(at))
        if self.state is OriginState.WAITING and at >= self._resume_at:
            self.state = OriginState.QUEUED
            return [self._enqueue(at, admitted=True)]
        if self.state is OriginState.QUEUED and at >= self._repeat_at:
            return [self._enqueue(at, admitted=self._placed)]
        if self._grant is not None and self._doubt is not None and at >= self._doubt:
            return self._lost(self._reason, at)
        return []

    # -- inside --------------------------------------------------------------------------------------------------

    def _enqueue(self, at: float, *, admitted: bool) -> Enqueue:
        self._repeat_at = at + REPEAT_EVERY_S
        return Enqueue(self.call.descriptor(at, self.gateway, grant_number=self._last_number, admitted=admitted))

    def _started(self, at: float) -> list[Effect]:
        if self.state is not OriginState.SENT:
            return []
        self.state = OriginState.RUNNING
        return self._stage("running", at)

    def _chunk(self, grant: Grant, chunk: Chunk) -> list[Effect]:
        if chunk.seq <= self._seq:
            return []
        if chunk.seq > self._seq + 1:
            return self._broken(grant)
        self._seq = chunk.seq
        self._unread_chunks += 1
        self._unread_bytes += len(chunk.data)
        return [RelayChunk(chunk.seq, chunk.data), *self._go_on()]

    def _go_on(self) -> list[Effect]:
        """Let the container send more, unless too much is unread."""
        lags = self._unread_chunks > UNREAD_CHUNKS or self._unread_bytes > UNREAD_BYTES
        if self._grant is None or lags or self._seq < self._window_sent + WINDOW // 2:
            return []
        self._window_sent = self._seq
        return [SendControl(self._grant.node, Window(call_id=self.call.call_id, upto=self._seq))]

    def _broken(self, grant: Grant) -> list[Effect]:
        cancel = SendControl(grant.node, Cancel(call_id=self.call.call_id, reason="a part of its stream was lost"))
        return [cancel, *self._fail(ContainerDied(LOST_PART))]

    def _refused(self, grant: Grant, refused: Refused, at: float) -> list[Effect]:
        if self.state is not OriginState.SENT or refused.reason is Refusal.DUPLICATE:
            return []  # a duplicate means that the first copy of this very grant was taken
        return self._elsewhere(grant, refused.reason, at)

    def _elsewhere(self, grant: Grant, reason: Refusal, at: float) -> list[Effect]:
        """The call never started there."""
        self._watch.refused(at)
        self._release()
        self._placements += 1
        if self._placements >= MAX_PLACEMENTS:
            error = Unavailable(f"{MAX_PLACEMENTS} containers in turn could not take the call (last: {reason}).")
            return [_decline(grant), *self._fail(error)]
        self.state = OriginState.QUEUED
        self._repeat_at = at + REPEAT_EVERY_S
        descriptor = self.call.descriptor(at, self.gateway, grant_number=self._last_number, admitted=True)
        return [HandBack(call=descriptor, container=grant.container, epoch=grant.epoch, reason=reason)]

    def _ended(self, grant: Grant, ended: Ended, at: float) -> list[Effect]:
        if not ended.started and ended.outcome in (Outcome.DIED, Outcome.TIMEOUT, Outcome.CANCELLED):
            reason = Refusal.DRAINING if ended.outcome is Outcome.CANCELLED else Refusal.GONE
            return self._elsewhere(grant, reason, at)
        ended = plausible(ended, self._watch.ended(at, ended.stages))
        self._release()
        self.starts += 1
        over = settlement_of(grant.node, ended)
        self.cost += over.cost or 0.0
        if ended.units:
            self.tokens += tokens_of(ended.units)
        self._spent = _together(self._spent, ended.spent)
        # One without a container is of a call that its agent does not hold, and knows nothing of.
        self.lost_starts += not ended.container
        match ended.outcome:
            case Outcome.OK:
                return [over, *self._finish(grant, ended)]
            case Outcome.RAISED if self._may_retry(at):
                self._resume_at = at + self._backoff()
                self._raised += 1
                self.state = OriginState.WAITING
                return [over]
            case Outcome.DIED | Outcome.CANCELLED:
                return [over, *self._again_or_died(ended.reason, at)]
            case _:
                return [over, *self._fail(failure(ended))]

    def _lost(self, reason: str, at: float) -> list[Effect]:
        """The call counts as started, and is lost."""
        self._watch.lost(at)
        self._release()
        self.starts += 1
        self.lost_starts += 1
        return self._again_or_died(reason, at)

    def _give_up_soon(self, reason: str, at: float) -> list[Effect]:
        if self._doubt is None:
            self._doubt, self._reason = at + LAST_WORDS_S, reason
        return []

    def _again_or_died(self, reason: str, at: float) -> list[Effect]:
        if not self.call.version.spec.idempotent or self._reruns >= MAX_RERUNS or self._seq:
            return self._fail(died(reason))
        self._reruns += 1
        self.state = OriginState.QUEUED
        return [self._enqueue(at, admitted=True)]

    def _may_retry(self, at: float) -> bool:
        in_time = at + self._backoff() < self.call.deadline_at
        return self._raised < self.call.version.spec.retries and not self._seq and in_time

    def _backoff(self) -> float:
        return min(FIRST_BACKOFF_S * 2.0**self._raised, MAX_RETRY_PAUSE_S)

    def _finish(self, grant: Grant, ended: Ended) -> list[Effect]:
        if ended.last_seq != self._seq:
            return self._fail(ContainerDied(LOST_PART))
        self.state = OriginState.DONE
        result = CallResult(
            output=ended.output,
            answer_size=ended.answer_size,
            spent=self._spent,
            stages=self._watch.stages(self.call.gateway_ms),
            cold_start=self._cold_start,
            attempts=self.starts,
            container=grant.container,
            units=ended.units,
        )
        return [result]

    def _fail(self, error: PilotlightError) -> list[Effect]:
        left = self._grant
        self._release()
        self.state = OriginState.DONE
        return [FailCall(error=error, left=left)]

    def _release(self) -> None:
        self._grant = None
        self._doubt = None

    def _stop(self, reason: str) -> list[Effect]:
        """Take the call from its agent, or from its home's queue."""
        if self._grant is not None:
            return [SendControl(self._grant.node, Cancel(call_id=self.call.call_id, reason=reason))]
        return [Withdraw(self.call.call_id)]

    def _too_late(self, at: float) -> DeadlineExceeded:
        waited = at - self.call.arrived_at
        if self.state is OriginState.QUEUED:
            why = f": {self._shortage}" if at - self._short_at <= SHORTAGE_S else ""
            return DeadlineExceeded(
                f"The deadline passed after {waited:.1f} s, while the call waited for a container{why}."
            )
        return DeadlineExceeded(f"The deadline passed after {waited:.1f} s, while the call was {self.state.value}.")

    def _stage(self, name: str, at: float) -> list[Effect]:
        return [ReportStage(name, (at - self.call.arrived_at) * 1000.0)] if self.call.stream else []


def settlement_of(node: str, ended: Ended) -> Settle:
    """What the home must know of a call that has ended at `node`."""
    return Settle(
        call_id=ended.call_id,
        node=node,
        container=ended.container,
        grant_number=ended.grant_number,
        cost=ended.gpu_ms,
        frees=ended.frees,
        outcome=ended.outcome,
    )


def _decline(grant: Grant) -> Settle:
    return Settle(call_id=grant.call_id, node=grant.node, container=grant.container, grant_number=grant.grant_number)


def _together(before: Spent | None, now: Spent | None) -> Spent | None:
    """The usage of a call's starts; of slices of several kinds only the last: a receipt has one price."""
    if before is None or now is None:
        return now or before
    together = msgspec.structs.replace(now, ns=before.ns + now.ns)
    alike = msgspec.structs.replace(together, ns=before.ns, batch_size=before.batch_size) == before
    return together if alike else now
