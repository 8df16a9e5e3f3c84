"""The slot table of a node: the calls that its containers hold.

What a home or an origin believes may be old: a paused process acts on what it knew. So every granted call passes
`SlotTable.accept`, which checks:

    epoch      a version's grants come from one home at a time: after a newer epoch, older ones are refused
    container  it exists here and does not drain
    grant      each (call, grant) is answered once. A call's grants rise: one not above the highest seen is a copy or
               was overtaken; a copy of a refused grant is refused too
    room       a container never holds more calls than it has slots
    time       a call that has not started within its time never starts: `start` checks right before the guest gets it

The table remembers the last `memory` ended calls, to recognise copies and to answer `reconcile` about calls whose last
frame was lost. The answer "it never came" enters the grant as seen, so it cannot start later.
"""

from __future__ import annotations

import math
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from pilotlight_core.model.messages.call_messages import (
    Outcome,
    Reconcile,
    Refusal,
    RemoteError,
    Run,
    Spent,
    Stages,
    Started,
)
from pilotlight_runtime.calls.waiting_calls import NO_NOTE

MEMORY = 100_000
"""Ended calls remembered."""
EPOCHS = 10_000
"""Versions without a container here whose epoch is remembered."""
ORPHANED_AFTER_S = 2.0
"""A call held for less may be missing from its origin's list because the list is older."""
EVERY_GRANT = sys.maxsize
CHECKPOINT_ROOM = 256.0
"""Checkpoints of a stream that may come at once; `ChunkRelay` says what makes room for more."""


class CallPhase(Enum):
    FETCHING = auto()  # its large input is on the way
    WAITING = auto()  # for the guest, or for its batch
    RUNNING = auto()  # the guest has it
    UPLOADING = auto()  # its large answer is on the way


class AcceptedCall:
    """One call in one slot of one container. Instants are monotonic seconds.

    What most calls never change is the class's until it is set: making one is a part of each call's cost.
    """

    phase: CallPhase = CallPhase.WAITING
    started_at: float = 0.0
    """When the guest got it; for an item run again alone, the last time."""
    execute_ms: float = 0.0
    batch_size: int = 1
    batch: int = 0
    """The number of its batch; 0: it runs alone."""
    nth: int = 0
    """Of the calls that its container has begun, from 1."""
    mates: Sequence[AcceptedCall] = ()
    """The calls that it ran with, itself among them, until it ends."""
    heard_seq: int = 0
    """The last chunk of its stream from the guest, including dropped ones."""
    sent_seq: int = 0
    """The last chunk sent to the origin."""
    read_seq: int = 0
    """The last chunk that the origin has passed on to the caller."""
    largest_chunk: int = 0
    """Bytes."""
    is_stream: bool = False
    """Whether it has begun to yield chunks, as its method says. What follows is worked out then: it is asked of each
    chunk, and the `Run` says it more slowly."""
    allowed_seq: int = 0
    """The last chunk that the guest may send, until the window moves."""
    filling_seq: int = 0
    """From this chunk on its window may be full, whatever comes next."""
    new_seq: int = -1
    """The last chunk that its caller had before it began here, of a stream that may go on elsewhere; -1: it may not."""
    checkpoint_room: float = CHECKPOINT_ROOM
    """How many checkpoints of its stream may come, as of `checkpoint_at`."""
    checkpoint_at: float = 0.0
    saved_at: float = -math.inf
    """When its last checkpoint was passed on."""
    is_movable: bool = True
    """Whether the origin of its stream has what another container needs to go on, as far as it has said."""
    repeats_until: float | None = None
    """Of a call that was lost elsewhere: until then, at the latest, it does what is billed there; None: it does not."""
    full_since_at: float = 0.0
    """When the window was filled, or last moved."""
    note: int = NO_NOTE
    """Its slot in `WaitingCalls`."""
    spent: Spent | None = None
    """What it cost, once that is metered."""
    outcome: Outcome | None = None
    """How it ends; None while that is open."""
    reason: str = ""
    error: RemoteError | None = None
    output: bytes = b""
    units: dict[str, int] | None = None
    """What the function counted of it, by `CallUnit`."""
    is_split: bool = False
    """Its batch raised as a whole, and it waits to be run again alone."""
    is_cancelled: bool = False
    is_preempted: bool = False
    """It ends early since its node is taken away."""
    is_own_death: bool = False
    """Its container died by its function's own doing."""
    is_over: bool = False
    """Its origin has its last frame, though the guest has not answered it."""
    abandoned_at: float | None = None
    """Since when it runs on although nobody wants its answer any more."""

    def __init__(self, run: Run, at: float, received_at: float) -> None:
        """The call of a `Run` accepted at `at`; its time limits count from `received_at`."""
        self.run = run
        self.call_id = run.call_id
        self.grant_number = run.grant_number
        self.gateway = run.gateway
        self.groups = run.groups
        self.accepted_at = at
        self.start_deadline_at = received_at + run.start_within_ms / 1000
        """After it, a call not yet given to the guest is refused."""
        self.deadline_at = received_at + run.timeout_ms / 1000
        """The caller's deadline."""
        self.input = run.input
        self.ready_at = at
        """When its input was complete."""

    @property
    def can_move(self) -> bool:
        """Whether it goes on elsewhere, behind what was sent, if its container is lost."""
        resume = self.run.resume
        return resume is not None and not resume.is_last and self.is_movable

    @property
    def was_started(self) -> bool:
        return self.phase is CallPhase.RUNNING or self.phase is CallPhase.UPLOADING

    @property
    def goes_on_elsewhere(self) -> bool:
        """Whether it is a stream that was ended here for another container to go on with it."""
        resume = self.run.resume
        return self.is_preempted and self.outcome is Outcome.DIED and resume is not None and not resume.is_last

    def start(self, at: float) -> None:
        self.phase, self.started_at = CallPhase.RUNNING, at

    def begun(self, price: str) -> Started:
        """That it has begun, on a slice of this price."""
        return Started(
            call_id=self.call_id, grant_number=self.grant_number, nth=self.nth, batch=self.batch, price=price
        )

    def decide(
        self, outcome: Outcome, *, reason: str = "", error: RemoteError | None = None, output: bytes = b""
    ) -> Outcome:
        """Decide how the call ends, unless that is decided already; returns the outcome that holds."""
        if self.outcome is None:
            self.outcome, self.reason, self.error, self.output = outcome, reason, error, output
        return self.outcome

    def stages(self, at: float) -> Stages:
        """The milliseconds spent in each stage up to `at`."""
        return Stages(
            fetch_ms=whole_us((self.ready_at - self.accepted_at) * 1e3) if self.run.body is not None else 0.0,
            batch_wait_ms=whole_us(((self.started_at or at) - self.ready_at) * 1e3),
            execute_ms=self.execute_ms,
            total_ms=whole_us((at - self.accepted_at) * 1e3),
        )


def whole_us(ms: float) -> float:
    """Milliseconds in whole microseconds, at least 0; `round` takes four times as long."""
    return int(ms * 1e3 + 0.5) / 1e3 if ms > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class ReleasedCall:
    """A call that holds no slot any more: its highest grant seen, and whether that one started."""

    call_id: str
    grant_number: int
    was_started: bool


@dataclass(frozen=True, kw_only=True)
class Reconciled:
    orphans: tuple[AcceptedCall, ...]
    """Held for the origin, which does not list them; the agent cancels them."""
    released: tuple[ReleasedCall, ...]
    """Listed by the origin and not held; the agent sends their last frame again."""


@dataclass(frozen=True, kw_only=True)
class SlotStatistics:
    containers: int
    slots: int
    held: int
    remembered: int


class _Container:
    __slots__ = ("draining", "held", "slots", "version")

    def __init__(self, version: str, slots: int) -> None:
        self.version = version
        self.slots = slots
        self.draining = False
        self.held: dict[AcceptedCall, None] = {}


class SlotTable:
    def __init__(self, *, instance: str = "", memory: int = MEMORY) -> None:
        self._instance = instance
        """The agent's incarnation; calls of earlier ones are unknown here."""
        self._memory = memory
        self._containers: dict[str, _Container] = {}
        self._held: dict[str, dict[int, AcceptedCall]] = {}
        """Call id -> grant number -> call; several grants only until an abandoned run ends."""
        self._past: OrderedDict[str, tuple[int, bool]] = OrderedDict()
        """Call id -> its highest grant seen that holds no slot, and whether that one started."""
        self._forgot = False
        """Whether an ended call was forgotten; then an unknown call may have been here."""
        self._epochs: dict[str, int] = {}
        """By version, in the order in which they were first seen."""

    # -- containers ----------------------------------------------------------------------------------------------

    def open(self, container: str, version: str, slots: int) -> None:
        """Let a ready container take up to `slots` calls."""
        self._containers[container] = _Container(version, slots)

    def drain(self, container: str) -> None:
        if container in self._containers:
            self._containers[container].draining = True

    def close(self, container: str) -> tuple[AcceptedCall, ...]:
        """Forget a container. Returns its calls, each of which must be answered."""
        gone = self._containers.pop(container, None)
        held = tuple(gone.held) if gone is not None else ()
        for call in held:
            self._drop(call)
        return held

    def held(self, container: str) -> tuple[str, ...]:
        """The ids of the calls in a container's slots."""
        known = self._containers.get(container)
        return tuple(call.call_id for call in known.held) if known is not None else ()

    def room(self, container: str) -> int:
        """A container's free slots; 0 if it takes no calls."""
        known = self._containers.get(container)
        return known.slots - len(known.held) if known is not None and not known.draining else 0

    def epoch(self, version: str) -> int:
        return self._epochs.get(version, 0)

    # -- calls ---------------------------------------------------------------------------------------------------

    def accept(self, run: Run, at: float, received_at: float | None = None) -> AcceptedCall | Refusal:
        """Take a granted call into a slot, or return why not. Either answer to this grant is final.

        `received_at` is the earliest instant at which the run can have come (default: `at`); its time to start counts
        from it.
        """
        call_id, grant_number = run.call_id, run.grant_number
        if grant_number <= self._highest(call_id):
            return Refusal.DUPLICATE
        refusal = self._refusal(run)
        if refusal is not None:
            self._remember(call_id, grant_number, started=False)
            return refusal
        call = AcceptedCall(run, at, at if received_at is None else received_at)
        self._containers[run.container].held[call] = None
        grants = self._held.get(call_id)
        if grants is None:
            self._held[call_id] = {grant_number: call}
        else:
            grants[grant_number] = call
        return call

    def start(self, call_id: str, grant_number: int, at: float) -> Refusal | None:
        """Count a call as started, right before the guest gets it; None if that is done.

        GONE: it is not held or was cancelled, and has been answered. EXPIRED: it is too late, its slot is free, and the
        caller answers the origin.
        """
        call = self._call(call_id, grant_number)
        if call is None or call.is_cancelled:
            return Refusal.GONE
        if at > call.start_deadline_at and not call.was_started:
            self.release(call_id, grant_number)
            return Refusal.EXPIRED
        call.start(at)
        return None

    def release(self, call_id: str, grant_number: int) -> bool:
        """Free the slot of an ended call; False if it held none."""
        call = self._call(call_id, grant_number)
        if call is None:
            return False
        del self._containers[call.run.container].held[call]
        self._drop(call)
        return True

    def cancel(self, call_id: str) -> tuple[AcceptedCall, ...]:
        """Cancel every grant of a call; returns the grants that were held.

        A grant that had not started is released and never starts; a started one keeps its slot until `release`. A run
        that arrives after its cancel is refused.
        """
        calls = tuple(self._held.get(call_id, {}).values())
        for call in calls:
            call.is_cancelled = True
            if not call.was_started:
                self.release(call_id, call.grant_number)
        started = any(call.was_started for call in calls)
        self._remember(call_id, EVERY_GRANT, started=started)
        return calls

    def release_overdue(self, at: float) -> tuple[AcceptedCall, ...]:
        """Release the calls that did not start in time; the caller answers each with EXPIRED."""
        late = tuple(
            call
            for grants in self._held.values()
            for call in grants.values()
            if not call.was_started and at > call.start_deadline_at
        )
        for call in late:
            self.release(call.call_id, call.grant_number)
        return late

    def reconcile(self, message: Reconcile, at: float) -> Reconciled:
        """Compare with an origin's live calls: all that it believes to be here, and those it asks about."""
        listed, grants = set(message.calls), message.grants
        orphans = tuple(
            call
            for call_id, held in self._held.items()
            for call in held.values()
            if call.run.gateway == message.gateway
            and call.accepted_at < at - ORPHANED_AFTER_S
            and (call_id not in listed or call.grant_number < grants.get(call_id, 0))
        )
        asked = grants if message.instance in ("", self._instance) else {}
        sure = bool(self._instance) and message.instance == self._instance and not self._forgot
        released = tuple(self._past_of(c, g, sure) for c, g in asked.items() if g not in self._held.get(c, {}))
        return Reconciled(orphans=orphans, released=released)

    # -- how it is -----------------------------------------------------------------------------------------------

    def statistics(self) -> SlotStatistics:
        return SlotStatistics(
            containers=len(self._containers),
            slots=sum(container.slots for container in self._containers.values()),
            held=sum(len(container.held) for container in self._containers.values()),
            remembered=len(self._past),
        )

    def check_integrity(self) -> None:
        """Raise AssertionError if a slot is leaked or given out twice."""
        by_call = {(call, grant) for call, grants in self._held.items() for grant in grants}
        held = [call for container in self._containers.values() for call in container.held]
        by_container = [(call.call_id, call.grant_number) for call in held]
        if sorted(by_call) != sorted(by_container):
            raise AssertionError("calls and containers disagree on what is held")
        if any(len(container.held) > container.slots for container in self._containers.values()):
            raise AssertionError("a container holds more than its slots")
        if not all(self._held.values()):
            raise AssertionError("a call is kept that holds nothing")
        if len(self._past) > self._memory or len(self._epochs) > EPOCHS + len(self._containers):
            raise AssertionError("more is remembered than allowed")

    # -- inside --------------------------------------------------------------------------------------------------

    def _highest(self, call_id: str) -> int:
        past, grants = self._past.get(call_id), self._held.get(call_id)
        highest = past[0] if past is not None else 0
        return max(highest, *grants) if grants is not None else highest

    def _call(self, call_id: str, grant_number: int) -> AcceptedCall | None:
        grants = self._held.get(call_id)
        return grants.get(grant_number) if grants is not None else None

    def _refusal(self, run: Run) -> Refusal | None:
        epoch = self._epochs.get(run.version)
        if epoch != run.epoch:
            if epoch is not None and run.epoch < epoch:
                return Refusal.STALE_EPOCH
            self._raise_epoch(run.version, run.epoch)
        container = self._containers.get(run.container)
        if container is None or container.version != run.version:
            return Refusal.GONE
        if container.draining:
            return Refusal.DRAINING
        if len(container.held) >= container.slots:
            return Refusal.NO_SLOT
        return Refusal.EXPIRED if run.start_within_ms <= 0 else None

    def _raise_epoch(self, version: str, epoch: int) -> None:
        self._epochs[version] = epoch
        if len(self._epochs) > EPOCHS:
            here = {container.version for container in self._containers.values()}
            oldest = next((one for one in self._epochs if one not in here and one != version), None)
            if oldest is not None:
                del self._epochs[oldest]

    def _past_of(self, call_id: str, grant_number: int, sure: bool) -> ReleasedCall:
        past = self._past.get(call_id)
        if past is None or past[0] < grant_number:
            # Never seen: it is entered now, so that it cannot start any more. It may have started before, unless
            # nothing was forgotten and it was sent to this incarnation.
            self._remember(call_id, grant_number, started=not sure)
            return ReleasedCall(call_id, grant_number, was_started=not sure)
        return ReleasedCall(call_id, grant_number, was_started=past[1])

    def _drop(self, call: AcceptedCall) -> None:
        call_id = call.call_id
        grants = self._held[call_id]
        del grants[call.grant_number]
        if not grants:
            del self._held[call_id]
        self._remember(call_id, call.grant_number, started=call.was_started)

    def _remember(self, call_id: str, grant_number: int, *, started: bool) -> None:
        known = self._past.get(call_id)
        if known is None:
            self._past[call_id] = (grant_number, started)
        elif known[0] <= grant_number:
            self._past[call_id] = (grant_number, started)
            self._past.move_to_end(call_id)
        if len(self._past) > self._memory:
            self._past.popitem(last=False)
            self._forgot = True
