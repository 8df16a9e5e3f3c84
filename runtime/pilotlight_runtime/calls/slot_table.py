"""The slot table of a node: which calls its containers hold. It alone decides who has a slot, and is the last fence.

What a home or an origin believes may be old: a process that was paused wakes up and acts on what it knew. So every
granted call passes `SlotTable.accept` before it may touch a container:

    epoch      a version's grants come from one home at a time; once a newer one has spoken, older ones are refused
    container  it must be here, and not draining
    grant      each (call, grant) is answered once. Grants of a call rise, so one that is not above the highest seen is
               a copy, or was overtaken; a copy of a refused grant is refused too, since its origin has moved on
    room       never more calls in a container than it has slots
    time       a call that has not started within its time never starts: `start` is asked right before the guest is

The last `memory` calls that ended are remembered (call id -> highest grant, and whether it started), so that a copy is
recognised and `reconcile` can tell an origin what became of a call whose last frame was lost. The answer "it never
came" binds: the grant is entered as seen, so that it cannot start later.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum, auto

from cachetools import FIFOCache

from pilotlight_core.model.messages.agent_messages import Outcome, Reconcile, Refusal, RemoteError, Run, Spent, Stages
from pilotlight_runtime.calls.waiting_calls import NO_NOTE

MEMORY = 100_000
"""Ended calls that are remembered."""
EPOCHS = 10_000
"""Versions whose fence is remembered."""
ORPHANED_AFTER_S = 2.0
"""Seconds that a call must be held before its absence from its origin's list means anything: the list may be older."""
EVERY_GRANT = sys.maxsize


class CallPhase(Enum):
    """Where an accepted call is."""

    FETCHING = auto()  # its large input is on the way
    WAITING = auto()  # for the guest, or for its batch
    RUNNING = auto()  # the guest has it
    UPLOADING = auto()  # its large answer is on the way


@dataclass(frozen=True, kw_only=True, slots=True)
class CallOutcome:
    """How a call ended."""

    outcome: Outcome
    reason: str = ""
    error: RemoteError | None = None
    output: bytes = b""


@dataclass(kw_only=True, slots=True)
class StreamProgress:
    """How far a stream's chunks have come, by their numbers."""

    heard_seq: int = 0
    """The last chunk from the guest, also when the call is decided and the chunk was dropped."""
    sent_seq: int = 0
    """The last chunk sent to the origin."""
    read_seq: int = 0
    """The last chunk that the origin has passed on to the caller."""
    full_since_at: float = 0.0
    """When the window was filled, or last moved."""


@dataclass(kw_only=True, slots=True, eq=False)
class AcceptedCall:
    """One call in one slot of one container. `SlotTable.accept` makes it; the container's `CallRunner` runs it."""

    run: Run
    accepted_at: float
    start_deadline_at: float
    """A call not handed to the guest by then is refused as expired."""
    deadline_at: float
    """The caller's deadline, at which its origin cancels the call; an origin that does not is taken for dead."""
    input: bytes
    phase: CallPhase = CallPhase.WAITING
    ready_at: float = 0.0
    """When its input was complete."""
    started_at: float = 0.0
    """When the guest got it; of an item that is run again alone, the last time."""
    execute_ms: float = 0.0
    batch_size: int = 1
    stream: StreamProgress = field(default_factory=StreamProgress)
    note: int = NO_NOTE
    """Its note among the `WaitingCalls`."""
    spent: Spent | None = None
    """What it cost, while its answer is on the way."""
    decided: CallOutcome | None = None
    """An outcome that was decided before the guest answered: it replaces the guest's answer."""
    is_cancelled: bool = False

    @classmethod
    def of(cls, run: Run, at: float, received_at: float) -> AcceptedCall:
        """The call of a `Run` that is accepted at `at`; its time limits count from `received_at`."""
        return cls(
            run=run,
            accepted_at=at,
            start_deadline_at=received_at + run.start_within_ms / 1000,
            deadline_at=received_at + run.timeout_ms / 1000,
            input=run.input,
            ready_at=at,
        )

    @property
    def call_id(self) -> str:
        return self.run.call_id

    @property
    def grant_number(self) -> int:
        return self.run.grant_number

    @property
    def was_started(self) -> bool:
        """Whether the guest has been given it."""
        return self.phase in (CallPhase.RUNNING, CallPhase.UPLOADING)

    def start(self, at: float) -> None:
        """Count it as started."""
        self.phase, self.started_at = CallPhase.RUNNING, at

    def stages(self, at: float) -> Stages:
        """Where the time went, up to `at`."""
        started_at = self.started_at or at
        return Stages(
            fetch=_ms(self.accepted_at, self.ready_at) if self.run.body is not None else 0.0,
            batch_wait=_ms(self.ready_at, started_at) if self.ready_at else 0.0,
            execute=self.execute_ms,
            total=_ms(self.accepted_at, at),
        )


def _ms(began_at: float, end_at: float) -> float:
    return round(max(0.0, end_at - began_at) * 1000, 3)


@dataclass(frozen=True, slots=True)
class ReleasedCall:
    """A call that holds no slot any more: the highest grant seen of it, and whether that one started."""

    call_id: str
    grant_number: int
    was_started: bool


@dataclass(frozen=True, kw_only=True)
class Reconciled:
    """What an origin's list of live calls leads to."""

    orphans: tuple[AcceptedCall, ...]
    """Held for the origin, which does not list them: the agent cancels them."""
    released: tuple[ReleasedCall, ...]
    """Listed by the origin and not held: their last frame was lost, or they never came. The agent sends it again."""


@dataclass(frozen=True, kw_only=True)
class SlotStatistics:
    """How a table is."""

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
        self.held: dict[tuple[str, int], AcceptedCall] = {}


class SlotTable:
    """The containers of a node that take calls, and the calls that they hold."""

    def __init__(self, *, instance: str = "", memory: int = MEMORY) -> None:
        self._instance = instance
        """The agent's incarnation: what an earlier one held is unknown here."""
        self._memory = memory
        self._containers: dict[str, _Container] = {}
        self._held: dict[str, dict[int, AcceptedCall]] = {}
        """Call id -> grant number -> call; more than one only while an abandoned run has not ended yet."""
        self._past: OrderedDict[str, ReleasedCall] = OrderedDict()
        self._forgot = False
        """Whether a call was forgotten: then an unknown one may have been here."""
        self._epochs: FIFOCache[str, int] = FIFOCache(EPOCHS)

    # -- containers ----------------------------------------------------------------------------------------------

    def open(self, container: str, version: str, slots: int) -> None:
        """A container is ready: it takes up to `slots` calls."""
        self._containers[container] = _Container(version, slots)

    def drain(self, container: str) -> None:
        """Refuse further calls of a container; it finishes those that it holds."""
        if container in self._containers:
            self._containers[container].draining = True

    def close(self, container: str) -> tuple[AcceptedCall, ...]:
        """Forget a container that is gone. Returns what it held: each must be answered."""
        gone = self._containers.pop(container, None)
        held = tuple(gone.held.values()) if gone is not None else ()
        for call in held:
            self._drop(call)
        return held

    def held(self, container: str) -> tuple[str, ...]:
        """The calls that occupy its slots: what its credit says."""
        known = self._containers.get(container)
        return tuple(call_id for call_id, _ in known.held) if known is not None else ()

    def room(self, container: str) -> int:
        """Its free slots; 0 if it takes nothing."""
        known = self._containers.get(container)
        return known.slots - len(known.held) if known is not None and not known.draining else 0

    def epoch(self, version: str) -> int:
        """The highest home epoch that has been seen for the version."""
        return self._epochs.get(version, 0)

    # -- calls ---------------------------------------------------------------------------------------------------

    def accept(self, run: Run, at: float, received_at: float | None = None) -> AcceptedCall | Refusal:
        """Take a granted call into a slot, or say why not. Either way this grant has been answered for good.

        `received_at` is when the run can have come at the earliest (default: `at`); its time to start counts from then.
        """
        if run.grant_number <= self._highest(run.call_id):
            return Refusal.DUPLICATE
        refusal = self._refusal(run)
        if refusal is not None:
            self._remember(ReleasedCall(run.call_id, run.grant_number, was_started=False))
            return refusal
        call = AcceptedCall.of(run, at, at if received_at is None else received_at)
        self._containers[run.container].held[run.call_id, run.grant_number] = call
        self._held.setdefault(run.call_id, {})[run.grant_number] = call
        return call

    def start(self, call_id: str, grant_number: int, at: float) -> Refusal | None:
        """Asked right before the guest gets the call. None: it counts as started from now on.

        GONE: it is not held, or was cancelled; whoever ended it has answered. EXPIRED: it is too late; the slot is
        free, and the caller of `start` answers the origin.
        """
        call = self._held.get(call_id, {}).get(grant_number)
        if call is None or call.is_cancelled:
            return Refusal.GONE
        if at > call.start_deadline_at and not call.was_started:
            self.release(call_id, grant_number)
            return Refusal.EXPIRED
        call.start(at)
        return None

    def release(self, call_id: str, grant_number: int) -> bool:
        """Free the slot of a call that has ended. False if it held none."""
        call = self._held.get(call_id, {}).get(grant_number)
        if call is None:
            return False
        del self._containers[call.run.container].held[call_id, grant_number]
        self._drop(call)
        return True

    def cancel(self, call_id: str) -> tuple[AcceptedCall, ...]:
        """Cancel every grant of a call. Returns what was held of it.

        A call that had not started is released and never starts; one that had keeps its slot until `release`. The
        cancel also keeps a run that it overtook from being accepted.
        """
        calls = tuple(self._held.get(call_id, {}).values())
        for call in calls:
            call.is_cancelled = True
            if not call.was_started:
                self.release(call_id, call.grant_number)
        started = any(call.was_started for call in calls)
        self._remember(ReleasedCall(call_id, EVERY_GRANT, was_started=started))
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
        """Compare with an origin's live calls: all that it believes to be here, and those whose fate it asks for."""
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
        """How it is, at once."""
        return SlotStatistics(
            containers=len(self._containers),
            slots=sum(container.slots for container in self._containers.values()),
            held=sum(len(container.held) for container in self._containers.values()),
            remembered=len(self._past),
        )

    def check_integrity(self) -> None:
        """Raise AssertionError if a slot is leaked or given out twice."""
        by_call = {(call, grant) for call, grants in self._held.items() for grant in grants}
        by_container = [key for container in self._containers.values() for key in container.held]
        if sorted(by_call) != sorted(by_container):
            raise AssertionError("calls and containers disagree on what is held")
        if any(len(container.held) > container.slots for container in self._containers.values()):
            raise AssertionError("a container holds more than its slots")
        if not all(self._held.values()):
            raise AssertionError("a call is kept that holds nothing")
        if len(self._past) > self._memory:
            raise AssertionError("more is remembered than allowed")

    # -- inside --------------------------------------------------------------------------------------------------

    def _highest(self, call_id: str) -> int:
        past = self._past.get(call_id)
        held = self._held.get(call_id)
        return max(past.grant_number if past is not None else 0, max(held) if held else 0)

    def _refusal(self, run: Run) -> Refusal | None:
        if run.epoch < self.epoch(run.version):
            return Refusal.STALE_EPOCH
        self._epochs[run.version] = run.epoch
        container = self._containers.get(run.container)
        if container is None or container.version != run.version:
            return Refusal.GONE
        if container.draining:
            return Refusal.DRAINING
        if len(container.held) >= container.slots:
            return Refusal.NO_SLOT
        return Refusal.EXPIRED if run.start_within_ms <= 0 else None

    def _past_of(self, call_id: str, grant_number: int, sure: bool) -> ReleasedCall:
        past = self._past.get(call_id)
        if past is None or past.grant_number < grant_number:
            # Never seen: from now on it is, and cannot start any more. Unless it is sure that nothing was forgotten and
            # that it was sent to this incarnation, it may have started before.
            self._remember(ReleasedCall(call_id, grant_number, was_started=not sure))
            return ReleasedCall(call_id, grant_number, was_started=not sure)
        return ReleasedCall(call_id, grant_number, was_started=past.was_started)

    def _drop(self, call: AcceptedCall) -> None:
        grants = self._held[call.call_id]
        del grants[call.grant_number]
        if not grants:
            del self._held[call.call_id]
        self._remember(ReleasedCall(call.call_id, call.grant_number, call.was_started))

    def _remember(self, past: ReleasedCall) -> None:
        known = self._past.get(past.call_id)
        if known is None or known.grant_number <= past.grant_number:
            self._past[past.call_id] = past
            self._past.move_to_end(past.call_id)
        if len(self._past) > self._memory:
            self._past.popitem(last=False)
            self._forgot = True
