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
2. A call that provably never started may go elsewhere, a few times (`Retries`). Proof is one of: no grant was used; the
   agent or its successor said so (`Refused`, or `Ended` with `started=False`); the bus said that there is no listener.
   Silence is no proof: a run that was sent counts as started.
3. A call that counts as started and was lost with its container or node is run again only if the function is
   idempotent, and not for ever (`Retries`); otherwise it fails with `container_died`, or with `preempted` where the
   node is taken away. If nobody says how it ended, what it did stays billed: the next start is not, for so long.
4. A call whose code raised is run again `retries=` times, after a backoff, if the deadline leaves time. What the new
   version of a rollout has failed (here, or as in 3) the old one runs (`SplitCalls`): here the call fails.
5. Once a chunk was relayed, a call is never run again: its caller has a part of the first answer. A resumable stream
   goes on from its journal instead, a few times (`Retries`): what its caller has is not relayed again.
6. The deadline ends everything, with a `Cancel` to the agent that has the call.

Events are method calls with the instant `at`; they return `effects`. The driver calls `tick` at `wake_at`. After
`CallResult` or `FailCall`, late frames only settle the home's account.
"""

from __future__ import annotations

import math
from enum import StrEnum

from msgspec import UNSET

from pilotlight_core.model.errors import Cancelled, PilotlightError
from pilotlight_core.model.messages.call_messages import (
    CallFrame,
    Cancel,
    Chunk,
    ChunkRow,
    Ended,
    Grant,
    Outcome,
    Refusal,
    Refused,
    ResumePoint,
    Started,
    StreamCheckpoint,
)
from pilotlight_core.model.messages.scheduling import Dropped, Enqueue, HandBack, Withdraw
from pilotlight_core.model.spec import Mode
from pilotlight_gateway.calls.attempts import Attempts, declined, settlement_of
from pilotlight_gateway.calls.effects import Effect, FailCall, SendControl, SendRun, failed_start
from pilotlight_gateway.calls.outcomes import call_failures
from pilotlight_gateway.calls.outcomes.retries import UNTRIED
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.stream_relay import StreamRelay, journal_changed, stage
from pilotlight_gateway.streams.stream_journal import StreamJournal

REPEAT_EVERY_S = 2.0
"""A waiting call is enqueued again this often: it, or its grant, may have been lost."""
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
        "_doubt", "_epoch", "_is_preempted", "_journal", "_lost_ms", "_placed", "_reason", "_relay", "_repeat_at",
        "_resume_at", "_retries", "_sent_at", "_short_at", "_shortage", "attempts", "call", "gateway", "grant",
        "last_number", "state",
    )  # fmt: skip

    def __init__(self, call: PreparedCall, gateway: str, at: float, last_number: int = 0) -> None:
        """`last_number`: the highest grant number that the call has used before, in another stage."""
        self.call = call
        self.gateway = gateway
        """The process that holds the caller."""
        self.state = OriginState.QUEUED
        self.attempts = Attempts(at)
        self._retries = UNTRIED
        self._relay: StreamRelay | None = None
        """From the first chunk on."""
        self._journal = StreamJournal() if is_resumable(call) else None
        """Of a stream that may go on elsewhere."""
        self.grant: Grant | None = None
        """The grant in use; None while the call waits."""
        self.last_number = last_number
        """The highest grant number that was used."""
        self._epoch = 0
        """Of the present home."""
        self._placed = False
        self._repeat_at = at
        self._resume_at = call.deadline_at
        self._doubt: float | None = None
        """When the call counts as lost, unless an agent reports its end; set when its container or node is gone."""
        self._reason = ""
        self._sent_at = at
        """When the grant in use was."""
        self._lost_ms = call.lost_ms
        """How long it was in a container of which nobody says how it ended: so long the next start is not billed."""
        self._is_preempted = False
        """Whether the container ends since its node is taken away."""
        self._shortage = ""
        """Why its version had no container at `_short_at`."""
        self._short_at = -math.inf

    # -- how it is -----------------------------------------------------------------------------------------------

    @property
    def wake_at(self) -> float:
        """When `tick` is due."""
        if self.state is OriginState.QUEUED:
            return min(self.call.deadline_at, self._repeat_at)
        if self.state is OriginState.WAITING:
            return min(self.call.deadline_at, self._resume_at)
        return self.call.deadline_at if self._doubt is None else min(self.call.deadline_at, self._doubt)

    @property
    def last_seq(self) -> int:
        """The number of the last chunk that its caller has, or will get."""
        return self._relay.last_seq if self._relay is not None else 0

    # -- the home's side -----------------------------------------------------------------------------------------

    def begin(self, at: float) -> list[Effect]:
        """The call begins."""
        return [*stage(self.call, "queued", at), self._enqueue(at, admitted=False)]

    def placed(self) -> None:
        """The call was sent to a home: no limit of a queue holds for it again, whether that home has got it or not."""
        self._placed = True

    def dropped(self, dropped: Dropped) -> list[Effect]:
        """The home did not admit the call, or dropped it."""
        return self._fail(call_failures.dropped_error(dropped)) if self.state is OriginState.QUEUED else []

    def home_changed(self, epoch: int, at: float) -> list[Effect]:
        """Another home acts from now on: a waiting call is enqueued there."""
        self._epoch = max(self._epoch, epoch)
        return [self._enqueue(at, admitted=self._placed)] if self.state is OriginState.QUEUED else []

    def shortage(self, at: float) -> str:
        """Why its version has no container, as far as the controller has said lately; "": it may have one."""
        return self._shortage if at - self._short_at <= SHORTAGE_S else ""

    def note_shortage(self, reason: str, at: float) -> None:
        """The fleet, or a limit, has no container for its version; said each tick while this lasts."""
        self._shortage, self._short_at = reason, at

    def granted(self, grant: Grant, at: float) -> list[Effect]:
        """The home has granted the call a container."""
        if grant == self.grant:
            return []
        if self.state is not OriginState.QUEUED or grant.epoch < self._epoch:
            return [declined(grant)]
        if grant.grant_number <= self.last_number:
            # Its home did not know; now it does, and the next grant is higher.
            return [declined(grant), self._enqueue(at, admitted=True)]
        if at >= self.call.deadline_at:
            return [declined(grant), *self.tick(at)]
        self.state = OriginState.SENT
        self.grant = grant
        self.last_number = grant.grant_number
        self._sent_at = at
        self._epoch = grant.epoch
        self.attempts.granted(grant, at)
        lost_ms = self._lost_ms if self._journal is None else 0.0
        run = self.call.run(grant, at, self.gateway, self._resume_point(), lost_ms=lost_ms)
        return [SendRun(grant.node, grant.instance, run)]

    def uses(self, grant_number: int) -> bool:
        """Whether the grant is in use."""
        return self.grant is not None and self.grant.grant_number == grant_number

    def withheld(self, grant_number: int) -> list[Effect]:
        """The grant must not be used: the start hook refused it."""
        grant = self.grant
        if grant is None or grant.grant_number != grant_number or self.state is not OriginState.SENT:
            return []
        self._release()
        return [declined(grant), *self._fail(Cancelled("The call was given up before it was sent."))]

    # -- the agent's side ----------------------------------------------------------------------------------------

    def no_responders(self, grant_number: int, at: float) -> list[Effect]:
        """The bus found no listener for the grant's run."""
        grant = self.grant
        if grant is None or grant.grant_number != grant_number or self.state is not OriginState.SENT:
            return []
        return self._elsewhere(grant, Refusal.GONE, at)

    def frame(self, node: str, frame: CallFrame, at: float) -> list[Effect]:
        """The agent of `node` has sent a frame of the call; if the call has a grant, it is for that node."""
        grant = self.grant
        if grant is None or frame.grant_number != grant.grant_number:
            # Of an older grant, or of a call without a caller: only the slot matters.
            return [settlement_of(node, frame)] if isinstance(frame, Ended) and self.state is OriginState.DONE else []
        match frame:
            case Ended():
                return self._ended(grant, frame, at)
            case Chunk():
                return self._started(at) + self._chunks(grant, frame.seq, (frame.data,), at)
            case StreamCheckpoint():
                return self._started(at) + self._checkpoint(frame, at)
            case Started():
                return self._started(at)
            case Refused():
                return self._refused(grant, frame, at)

    def chunks(self, row: ChunkRow, at: float) -> list[Effect]:
        """The agent of the grant's node has sent chunks of the call, if it has a grant."""
        grant = self.grant
        if grant is None or row.grant_number != grant.grant_number:
            return []
        effects = self._started(at)
        if self._journal is None:
            return effects + self._chunks(grant, row.seq, row.data, at)
        for number, data in enumerate(row.data):  # each has its mark
            effects += self._chunks(grant, row.seq + number, (data,), at)
            if self.grant is not grant:
                break
        return effects

    def awaits(self, grant_number: int, seq: int, data: tuple[bytes, ...]) -> bool:
        """Whether these are the next chunks for its caller, about whom nothing is to be decided."""
        relay = self._relay
        if relay is None or self.state is not OriginState.RUNNING or grant_number != self.last_number:
            return False
        # An agent may say anything, and nothing is no chunk.
        return self.grant is not None and len(data) > 0 and relay.awaits(seq)

    def took_chunks(self, seq: int, data: tuple[bytes, ...], at: float) -> list[Effect]:
        """Its caller has read such chunks as they came."""
        relay, journal = self._relay, self._journal
        assert relay is not None  # noqa: S101 - it awaits them
        effects = relay.took(data, self.grant)
        if journal is None:
            return effects
        was_closed = bool(journal.closed)
        journal.note(seq, data, at)
        if journal.is_settled and bool(journal.closed) is was_closed:
            return effects
        return effects + journal_changed(journal, self.call, self.grant, at, was_closed=was_closed)

    def was_read(self, chunks: int, size: int) -> list[Effect]:
        """The caller has read so many chunks, of `size` bytes together."""
        return self._relay.was_read(chunks, size, self.grant) if self._relay is not None else []

    def close_journal(self, why: str, at: float) -> list[Effect]:
        """The gateway has no memory for the journal: the stream cannot go on elsewhere."""
        assert self._journal is not None  # noqa: S101 - it asked for the memory
        self._journal.close(why)
        return journal_changed(self._journal, self.call, self.grant, at, was_closed=False)

    def node_gone(self, node: str, instance: str, reason: str, at: float) -> list[Effect]:
        """An agent is gone, or counts as gone."""
        grant = self.grant
        if grant is None or (grant.node, grant.instance) != (node, instance):
            return []
        # A run that was just sent may reach the node's next agent, which knows that it never started.
        return self._lost(reason, at) if self.state is OriginState.RUNNING else self._give_up_soon(reason, at)

    def container_gone(self, node: str, container: str, reason: str, at: float) -> list[Effect]:
        """A container of `node` is gone; its agent lives, and usually reports the end of the call."""
        grant = self.grant
        ours = grant is not None and (grant.node, grant.container) == (node, container)
        return self._give_up_soon(reason, at) if ours else []

    def container_preempted(self, container: str, *, is_so: bool) -> None:
        """A container ends since its node is taken away, or no longer: then it is why nothing more is heard of it."""
        if self.grant is not None and self.grant.container == container:
            self._is_preempted = is_so

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
        if self.grant is not None and self._doubt is not None and at >= self._doubt:
            return self._lost(self._reason, at)
        return []

    # -- inside --------------------------------------------------------------------------------------------------

    def _enqueue(self, at: float, *, admitted: bool) -> Enqueue:
        self._repeat_at = at + REPEAT_EVERY_S
        return Enqueue(self.call.descriptor(at, self.gateway, grant_number=self.last_number, admitted=admitted))

    def _started(self, at: float) -> list[Effect]:
        if self.state is not OriginState.SENT:
            return []
        self.state = OriginState.RUNNING
        if self._journal is not None:
            self._journal.begin(at)
        return stage(self.call, "running", at)

    def _chunks(self, grant: Grant, seq: int, data: tuple[bytes, ...], at: float) -> list[Effect]:
        """Relay chunks that follow each other; of a stream with a journal they come one by one."""
        if (relay := self._relay) is None:
            relay = self._relay = StreamRelay()
        journal, before = self._journal, relay.last_seq
        if journal is not None and relay.heard_seq < seq <= before and not journal.repeats(seq, data[0]):
            return self._stop("it repeats other events") + self._fail(call_failures.diverged(seq))
        effects = relay.relay(seq, data, grant)
        if effects is None:
            return self._stop("a part of its stream was lost") + self._fail(call_failures.broken_stream())
        if journal is None:
            return effects
        if relay.last_seq == before:
            if seq == before:
                journal.note_caught_up(at)
            return effects
        was_closed = bool(journal.closed)
        journal.note(seq, data, at)
        return effects + journal_changed(journal, self.call, grant, at, was_closed=was_closed)

    def _checkpoint(self, saved: StreamCheckpoint, at: float) -> list[Effect]:
        journal = self._journal
        if journal is None or (self._relay is not None and saved.seq > self._relay.heard_seq):
            return []  # it asked for none; or a chunk is lost, which the next one shows
        was_closed = bool(journal.closed)
        journal.save(saved.seq, saved.state, at)
        return journal_changed(journal, self.call, self.grant, at, was_closed=was_closed)

    def _refused(self, grant: Grant, refused: Refused, at: float) -> list[Effect]:
        if self.state is not OriginState.SENT or refused.reason is Refusal.DUPLICATE:
            return []  # a duplicate means that the first copy of this very grant was taken
        return self._elsewhere(grant, refused.reason, at)

    def _elsewhere(self, grant: Grant, reason: Refusal, at: float) -> list[Effect]:
        """The call never started there."""
        self.attempts.refused(grant, reason.value, at)
        self._release()
        self._retries = self._retries.after_refusal()
        if not self._retries.may_be_placed:
            return [declined(grant), *self._fail(call_failures.turned_away(self._retries.refused, reason))]
        self.state = OriginState.QUEUED
        self._repeat_at = at + REPEAT_EVERY_S
        descriptor = self.call.descriptor(at, self.gateway, grant_number=self.last_number, admitted=True)
        return [HandBack(call=descriptor, container=grant.container, epoch=grant.epoch, reason=reason)]

    def _ended(self, grant: Grant, ended: Ended, at: float) -> list[Effect]:
        if not ended.started and ended.outcome in (Outcome.DIED, Outcome.TIMEOUT, Outcome.CANCELLED):
            reason = Refusal.DRAINING if ended.outcome is Outcome.CANCELLED else Refusal.GONE
            return self._elsewhere(grant, reason, at)
        ended, over = self.attempts.ended(grant, ended, at)
        if ended.container and ended.outcome is not Outcome.CANCELLED:
            self._lost_ms = 0.0
        else:  # its agent knows nothing of it, or gave it up since it did not hear from here
            self._lose_billed(at)
        preempted = ended.preempted or (self._is_preempted and not ended.container)  # none: how it ended is lost
        self._release()
        match ended.outcome:
            case Outcome.OK:
                return [over, *self._finish(grant, ended)]
            case Outcome.RAISED if self._may_retry(at):
                self._resume_at = at + self._retries.backoff_s
                self._retries = self._retries.after_raise()
                self.state = OriginState.WAITING
                return [over, *failed_start(self.call, "function_raised", self.attempts)]
            case Outcome.DIED | Outcome.CANCELLED:
                if self._journal is not None and ended.by_tenant:
                    self._journal.charge_repeats()
                return [over, *self._again_or_died(ended.reason, at, preempted=preempted)]
            case _:
                return [over, *self._fail(call_failures.failure(ended))]

    def _lost(self, reason: str, at: float) -> list[Effect]:
        """The call counts as started, and is lost."""
        self.attempts.lost(self.grant, reason, at)
        self._lose_billed(at)
        preempted = self._is_preempted
        self._release()
        return self._again_or_died(reason, at, preempted=preempted)

    def _lose_billed(self, at: float) -> None:
        """What it did in its container is lost, and stays billed, up to its timeout: the next is not billed again."""
        most_s = self.call.version.spec.timeout
        self._lost_ms = max(self._lost_ms, min(at - self._sent_at, most_s) * 1000.0)
        has_caught_up = self._relay is None or self._relay.heard_seq >= self._relay.last_seq
        if self._journal is not None and self.state is OriginState.RUNNING and has_caught_up:
            self._journal.note_silence(at, most_s)

    def _give_up_soon(self, reason: str, at: float) -> list[Effect]:
        if self._doubt is None:
            self._doubt, self._reason = at + LAST_WORDS_S, reason
        return []

    def _again_or_died(self, reason: str, at: float, *, preempted: bool) -> list[Effect]:
        if self._journal is not None:
            return self._move(self._journal, reason, at, preempted=preempted)
        is_left = self.call.is_tried_once and not preempted
        if is_left or not self._retries.may_rerun(self.call.version.spec) or self._has_relayed:
            return self._fail(call_failures.preempted(reason) if preempted else call_failures.died(reason))
        self._retries = self._retries.after_loss()
        self.state = OriginState.QUEUED
        failed = [] if preempted else failed_start(self.call, "container_died", self.attempts)
        return [*failed, self._enqueue(at, admitted=True)]

    def _resume_point(self) -> ResumePoint | None:
        if self._journal is None:
            return None
        is_last = not self._retries.may_move(self.call.version.spec)
        return self._journal.point(self.last_seq, resumed=self._retries.lost > 0, is_last=is_last)

    def _move(self, journal: StreamJournal, reason: str, at: float, *, preempted: bool) -> list[Effect]:
        """A resumable stream was lost: another container goes on behind the last checkpoint."""
        if journal.closed or not self._retries.may_move(self.call.version.spec):
            moved = self._retries.lost
            error = call_failures.stream_lost(reason, moved, journal.closed, preempted=preempted)
            return self._fail(error)
        self._retries = self._retries.after_loss()
        self.state = OriginState.QUEUED
        point = journal.point(self.last_seq)
        if self._relay is not None:
            self._relay.restart(point.after)
        is_own = self.call.version.tenant == self.call.tenant  # why a container ended is its owner's to know
        detail = {"reason": reason if is_own else "", "after": point.after, "sent": point.sent}
        return [*stage(self.call, "moving", at, **detail), self._enqueue(at, admitted=True)]

    def _of_part(self, error: PilotlightError) -> PilotlightError:
        """An error of a call whose caller may have a part of the answer: it says where that is billed."""
        if self._has_relayed:
            error.more |= {"call": self.call.call_id, "receipt": f"/v1/calls/{self.call.call_id}/receipt"}
        return error

    def _may_retry(self, at: float) -> bool:
        call = self.call
        may_be = not call.is_tried_once and not self._has_relayed
        return may_be and self._retries.may_retry(call.version.spec, at, call.deadline_at)

    @property
    def _has_relayed(self) -> bool:
        return self.last_seq > 0

    def _finish(self, grant: Grant, ended: Ended) -> list[Effect]:
        if self._journal is not None and ended.last_seq < self.last_seq:
            return self._fail(call_failures.diverged(ended.last_seq + 1))
        if ended.last_seq != self.last_seq:
            return self._fail(call_failures.broken_stream())
        self.state = OriginState.DONE
        return [self.attempts.result(ended, grant, self.call.gateway_ms, self.call.version.spec)]

    def _fail(self, error: PilotlightError) -> list[Effect]:
        left = self.grant
        self._release()
        self.state = OriginState.DONE
        return [FailCall(error=self._of_part(error), left=left)]

    def _release(self) -> None:
        self.grant = None
        self._doubt = None
        self._is_preempted = False

    def _stop(self, reason: str) -> list[Effect]:
        """Take the call from its agent, or from its home's queue."""
        if self.grant is not None:
            return [SendControl(self.grant.node, Cancel(call_id=self.call.call_id, reason=reason))]
        return [Withdraw(self.call.call_id)]

    def _too_late(self, at: float) -> PilotlightError:
        waited_s = at - self.call.arrived_at
        if self.state is not OriginState.QUEUED:
            return call_failures.deadline_passed(waited_s, f"was {self.state.value}")
        return call_failures.deadline_passed(waited_s, "waited for a container", self.shortage(at))


def is_resumable(call: PreparedCall) -> bool:
    """Whether the call is a stream that may go on elsewhere."""
    return call.version.spec.resumable is not UNSET and call.method.mode is Mode.GENERATOR
