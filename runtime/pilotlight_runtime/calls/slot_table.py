"""The slot table of a node: which calls its containers hold. It is the hard truth about room, and the last fence.

What a home or an origin believes may be old: a process that was paused wakes up and acts on what it knew. So every
granted call passes through here before it may touch a container:

    epoch      a version's grants come from one home at a time; once a newer one has spoken, older ones are refused
    container  it must be here, and not draining
    grant      each (call, grant) is answered once. Grants of a call rise, so one that is not above the highest seen is
               a copy, or was overtaken; a copy of a refused grant is refused too, since its origin has moved on
    room       never more calls in a container than it has slots
    time       a call that has not started within its time never starts: `start` is asked right before the guest is

What has ended is remembered (call -> highest grant, and whether it started), the last `memory` of them, so that a
copy is recognised and `reconcile` can tell an origin what became of a call whose last frame was lost. To say "it
never came" binds: the grant is entered as seen, so that it cannot start later.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from dataclasses import dataclass

from cachetools import FIFOCache

from pilotlight_core.model.messages.agent_messages import Reconcile, Refusal, Run

MEMORY = 100_000
"""Calls that are remembered after they ended."""
EPOCHS = 10_000
"""Versions whose fence is remembered."""
ORPHANED_AFTER = 2.0
"""Seconds that a call must be held before its absence from its origin's list means anything: the list may be older."""
EVERY_GRANT = sys.maxsize


@dataclass(slots=True)
class OccupiedSlot:
    """A call that occupies a slot."""

    call: str
    grant: int
    container: str
    gateway: str
    accepted: float
    start_by: float
    started: bool = False
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class ReleasedCall:
    """A call that holds no slot any more: the highest grant that was seen, and whether that one started."""

    call: str
    grant: int
    started: bool


@dataclass(frozen=True, kw_only=True)
class Reconciled:
    """What an origin's list of live calls leads to."""

    orphans: tuple[OccupiedSlot, ...]
    """Held for the origin, which does not want them any more. To be cancelled."""
    over: tuple[ReleasedCall, ...]
    """Wanted by the origin and not held: its last frame was lost, or it never came. To be told."""


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
        self.held: dict[tuple[str, int], OccupiedSlot] = {}


class SlotTable:
    """The containers of a node that take calls, and the calls that they hold."""

    def __init__(self, *, instance: str = "", memory: int = MEMORY) -> None:
        self._instance = instance
        """The agent's incarnation: what an earlier one held is unknown here."""
        self._memory = memory
        self._containers: dict[str, _Container] = {}
        self._held: dict[str, dict[int, OccupiedSlot]] = {}
        """Call -> grant -> what is held; more than one only while an abandoned run has not ended yet."""
        self._past: OrderedDict[str, ReleasedCall] = OrderedDict()
        self._forgot = False
        """Whether something was forgotten: then what is not known may have been here."""
        self._epochs: FIFOCache[str, int] = FIFOCache(EPOCHS)

    # -- containers ----------------------------------------------------------------------------------------------

    def open(self, container: str, version: str, slots: int) -> None:
        """A container is ready: it takes up to `slots` calls."""
        self._containers[container] = _Container(version, slots)

    def drain(self, container: str) -> None:
        """It takes no more calls, and finishes those that it holds."""
        if container in self._containers:
            self._containers[container].draining = True

    def close(self, container: str) -> tuple[OccupiedSlot, ...]:
        """It is gone. Returns what it held: each must be answered, and may go elsewhere if it has not started."""
        gone = self._containers.pop(container, None)
        held = tuple(gone.held.values()) if gone is not None else ()
        for item in held:
            self._drop(item)
        return held

    def held(self, container: str) -> tuple[str, ...]:
        """The calls that occupy its slots: what its credit says."""
        known = self._containers.get(container)
        return tuple(call for call, _ in known.held) if known is not None else ()

    def room(self, container: str) -> int:
        """Its free slots; 0 if it takes nothing."""
        known = self._containers.get(container)
        return known.slots - len(known.held) if known is not None and not known.draining else 0

    def epoch(self, version: str) -> int:
        """The highest home epoch that has been seen for the version."""
        return self._epochs.get(version, 0)

    # -- calls ---------------------------------------------------------------------------------------------------

    def accept(self, run: Run, at: float) -> Refusal | None:
        """Take a granted call into a slot (None), or say why not. Either way this grant has been answered for good."""
        if run.grant <= self._highest(run.call):
            return Refusal.DUPLICATE
        refusal = self._refusal(run)
        if refusal is not None:
            self._remember(ReleasedCall(run.call, run.grant, started=False))
            return refusal
        item = OccupiedSlot(run.call, run.grant, run.container, run.gateway, at, at + run.start_within_ms / 1000.0)
        self._containers[run.container].held[run.call, run.grant] = item
        self._held.setdefault(run.call, {})[run.grant] = item
        return None

    def start(self, call: str, grant: int, at: float) -> Refusal | None:
        """To be asked right before the guest gets the call. None: it counts as started from now on.

        GONE: it is not held (any more), or was cancelled; whoever ended it has answered. EXPIRED: it is too late; the
        slot is free, and the origin is to be told.
        """
        item = self._held.get(call, {}).get(grant)
        if item is None or item.cancelled:
            return Refusal.GONE
        if at > item.start_by and not item.started:
            self.release(call, grant)
            return Refusal.EXPIRED
        item.started = True
        return None

    def release(self, call: str, grant: int) -> bool:
        """The call has ended: its slot is free. False if it held none."""
        item = self._held.get(call, {}).get(grant)
        if item is None:
            return False
        del self._containers[item.container].held[call, grant]
        self._drop(item)
        return True

    def cancel(self, call: str) -> tuple[OccupiedSlot, ...]:
        """Nobody wants the call any more. Returns what was held of it.

        What had not started is released, and will not. What had started keeps its slot until `release`. A cancel that
        overtook its run keeps it from being accepted.
        """
        items = tuple(self._held.get(call, {}).values())
        for item in items:
            item.cancelled = True
            if not item.started:
                self.release(call, item.grant)
        started = any(item.started for item in items)
        self._remember(ReleasedCall(call, EVERY_GRANT, started=started))
        return items

    def overdue(self, at: float) -> tuple[OccupiedSlot, ...]:
        """The calls that had not started in time, now released: each is to be answered with EXPIRED."""
        late = tuple(
            item
            for grants in self._held.values()
            for item in grants.values()
            if not item.started and at > item.start_by
        )
        for item in late:
            self.release(item.call, item.grant)
        return late

    def reconcile(self, message: Reconcile, at: float) -> Reconciled:
        """Compare with an origin's live calls: all that it believes to be here, and those whose fate it asks for."""
        calls, grants = set(message.calls), message.grants
        orphans = tuple(
            item
            for call, held in self._held.items()
            for item in held.values()
            if item.gateway == message.gateway
            and item.accepted < at - ORPHANED_AFTER
            and (call not in calls or item.grant < grants.get(call, 0))
        )
        asked = grants if message.instance in ("", self._instance) else {}
        sure = bool(self._instance) and message.instance == self._instance and not self._forgot
        over = tuple(self._past_of(c, g, sure) for c, g in asked.items() if g not in self._held.get(c, {}))
        return Reconciled(orphans=orphans, over=over)

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

    def _highest(self, call: str) -> int:
        past = self._past.get(call)
        held = self._held.get(call)
        return max(past.grant if past is not None else 0, max(held) if held else 0)

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

    def _past_of(self, call: str, grant: int, sure: bool) -> ReleasedCall:
        past = self._past.get(call)
        if past is None or past.grant < grant:
            # Never seen: from now on it is, and cannot start any more. Unless it is sure that nothing was forgotten and
            # that it was sent to this incarnation, it may have started before.
            self._remember(ReleasedCall(call, grant, started=not sure))
            return ReleasedCall(call, grant, started=not sure)
        return ReleasedCall(call, grant, started=past.started)

    def _drop(self, item: OccupiedSlot) -> None:
        grants = self._held[item.call]
        del grants[item.grant]
        if not grants:
            del self._held[item.call]
        self._remember(ReleasedCall(item.call, item.grant, item.started))

    def _remember(self, past: ReleasedCall) -> None:
        known = self._past.get(past.call)
        if known is None or known.grant <= past.grant:
            self._past[past.call] = past
            self._past.move_to_end(past.call)
        if len(self._past) > self._memory:
            self._past.popitem(last=False)
            self._forgot = True
