"""What containers use: a slice's meter on the node's boot clock, and how long batches took."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from pilotlight_core.model.messages.call_messages import Outcome, Run, Spent
from pilotlight_core.model.messages.ran import BatchesRan
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.messages.usage_facts import Fault, Purpose, is_guess
from pilotlight_core.model.spec import Manifest, tags_of
from pilotlight_core.model.units import NS_PER_S
from pilotlight_runtime.metering.meter import NOTHING
from pilotlight_runtime.metering.metered_slice import SliceOwner
from pilotlight_runtime.metering.usage_metering import Meter, boot_ns

MOST_KINDS = 512
"""Pairs of container and batch size in one report; further ones are left out."""
MOST_OF_ONE = 32
"""Batch sizes of one container, so that none crowds out the others."""
MOST_MS = 8
"""Durations of one batch size of one container."""


FAULTS: dict[Outcome, Fault] = {
    Outcome.OK: Fault.NONE,
    Outcome.CANCELLED: Fault.NONE,
    Outcome.RAISED: Fault.TENANT,
    Outcome.LOAD_FAILED: Fault.TENANT,
    Outcome.TIMEOUT: Fault.TENANT,
    Outcome.BAD_INPUT: Fault.TENANT,
    Outcome.BAD_OUTPUT: Fault.TENANT,
}
"""Whose fault an outcome is; of `DIED` it depends on the container's end."""
SPLIT = "split"
"""The outcome of a run in a batch after which the call is run again alone."""
REPEATED = "repeated"
"""The outcome of the part of a call that repeats what it did in an earlier container, which was lost."""
UNPROVEN_NS = NS_PER_S
"""The operator pays for a batch that raised as long as runs alone have made up for those before, but for so much: code
that works in its batches, raises, and answers from what it kept would be free otherwise.
"""
WORDS: dict[Outcome, str] = {outcome: outcome.value for outcome in Outcome}
"""For usage; an enum's `value` is a call of a function."""


class ContainerMeter:
    """Meters a container's slice for its `owner`; until that is known the time is the operator's."""

    def __init__(
        self,
        meter: Meter,
        work: WorkLog,
        key: WorkKey,
        *,
        purpose: Purpose = Purpose.CALL,
        memory: int = 0,
        core_ppm: int = 0,
        gib_ppm: int = 0,
        clock: Callable[[], int] = boot_ns,
    ) -> None:
        """`purpose` is why the container is started, `memory` the bytes that it is promised.

        `core_ppm` and `gib_ppm` are what it pays for beside its slice.
        """
        self.owner = self._left = SliceOwner()
        self.fault_of_death = Fault.TENANT
        """Whose fault it is if its calls die with it."""
        self._purpose = purpose
        self._memory = memory
        self._core_ppm = core_ppm
        self._gib_ppm = gib_ppm
        self._meter = meter
        self._work = work
        self._key = key
        self._clock = clock
        self._refunded_ns = 0
        """What batches took that the operator pays for ..."""
        self._rerun_ns = 0
        """... and what their calls took alone."""
        self._rerun: set[str] = set()
        """Calls that run alone after such a batch."""

    def set_owner(self, manifest: Manifest, version: str, container: str) -> None:
        """From the next state on the manifest's tenant pays."""
        self.owner = SliceOwner(
            tenant=manifest.tenant,
            app=manifest.app,
            function=manifest.function,
            version=version,
            container=container,
            purpose=self._purpose,
            memory=self._memory,
            tags=tags_of(manifest.spec),
            core_ppm=self._core_ppm,
            gib_ppm=self._gib_ppm,
        )

    @property
    def is_guess(self) -> bool:
        """Whether it is there by the platform's guess, and has begun no call since."""
        return is_guess(self._purpose, used=self._meter.used)

    @property
    def price(self) -> str:
        """The price id of what it has now."""
        return self._meter.price

    def keep(self, purpose: Purpose) -> None:
        """From now on the container is there for `purpose`, as if it had begun no call."""
        self._purpose = purpose
        if self.owner.container:
            self.owner = msgspec.structs.replace(self.owner, purpose=purpose)
            self._meter.keep(self.owner, self._clock())

    def park(self, memory: Meter, size: int) -> None:
        """Leave the slice, which is free now, for `size` bytes of the host's memory, all that is paid for.

        From now on it is there by the platform's guess that it will be called again.
        """
        self._purpose = Purpose.PREWARM
        self.release()
        self._left, self._meter = self.owner, memory
        self.owner = msgspec.structs.replace(
            self.owner, purpose=self._purpose, memory=size, core_ppm=0, gib_ppm=size * 1_000_000 // 2**30
        )
        self.enter(LeaseState.PARKED)

    def unpark(self, meter: Meter, purpose: Purpose) -> None:
        """Leave the memory, which is free now, for a slice, and be there for `purpose`, as if it had begun no call."""
        self._purpose, self._meter = purpose, meter
        self.owner = msgspec.structs.replace(self._left, purpose=purpose)
        self.enter(LeaseState.LOADING)

    def enter(self, state: LeaseState) -> None:
        """Put the slice in `state`; its `owner`, once that is known, pays for all but the release."""
        self._meter.transition(state, self._clock(), self.owner)

    def release(self) -> None:
        self._meter.transition(LeaseState.FREE, self._clock())

    def call_started(self, run: Run) -> None:
        cold_us = round(run.cold_ms * 1000.0) if run.cold_ms else 0
        self._meter.call_started(
            run.call_id, run.tenant, self._clock(), key=run.key, tags=run.tags, cold_us=cold_us, shadow=run.shadow,
            parent=run.parent, resumed=run.resume is not None and run.resume.resumed,
        )  # fmt: skip

    def end_batch(self, calls: Iterable[tuple[str, int]]) -> None:
        """End a batch that raised as a whole; its calls, each with the size, run again and are billed for that alone.

        For both, where the batches before took much longer than their calls took alone.
        """
        is_proven = self._refunded_ns <= self._rerun_ns + UNPROVEN_NS
        for call_id, size in calls:
            fault = Fault.PLATFORM if is_proven else Fault.TENANT
            spent = self._meter.call_ended(call_id, SPLIT, self._clock(), size, fault=fault)
            self._refunded_ns += spent.ns if is_proven else 0

    def call_restarted(self, run: Run) -> None:
        """A call of a batch that was split runs again; what it waited for is told of its first start."""
        self._rerun.add(run.call_id)
        self._meter.call_started(
            run.call_id, run.tenant, self._clock(), key=run.key, tags=run.tags, shadow=run.shadow, parent=run.parent
        )  # fmt: skip

    def end_repeat(self, run: Run) -> None:
        """A call has repeated what is billed elsewhere: that was the operator's time, what follows is its tenant's."""
        at_ns = self._clock()
        self._meter.call_ended(run.call_id, REPEATED, at_ns, fault=Fault.PLATFORM)
        self._meter.call_started(
            run.call_id, run.tenant, at_ns, key=run.key, tags=run.tags, shadow=run.shadow, parent=run.parent,
            resumed=True,
        )  # fmt: skip

    def keep_work(self, call_ids: Sequence[str]) -> None:
        """What streams have done up to now need not be done again, if they go on elsewhere."""
        self._meter.keep_work(call_ids, self._clock())

    def call_ended(
        self,
        call_id: str,
        outcome: Outcome,
        batch_size: int,
        units: dict[str, int] | None = None,
        *,
        ran: bool = True,
        fault: Fault | None = None,
        can_move: bool = False,
    ) -> Spent:
        """A call has ended; what did not run, though it was about to, is charged nothing.

        `fault`: whose its end is, where that does not follow from the outcome. `can_move`: if it died with its
        container it goes on elsewhere, and counts there. What it had kept by then is its tenant's, what it did since is
        done again there, and paid there alone.
        """
        moved = can_move and outcome is Outcome.DIED
        fault = (fault or FAULTS.get(outcome, self.fault_of_death)) if ran else Fault.PLATFORM
        is_lost = ran and moved and fault is Fault.PLATFORM
        spent = self._meter.call_ended(
            call_id,
            WORDS[outcome],
            self._clock(),
            batch_size,
            fault=Fault.NONE if is_lost else fault,
            units=units or NOTHING,
            moved=moved,
            is_lost=is_lost,
        )
        if self._rerun and call_id in self._rerun:
            self._rerun.discard(call_id)
            self._rerun_ns += spent.ns
        return spent

    def record_batch(self, size: int, ms: float) -> None:
        """Record that `size` calls ran at once, ended well and took `ms` milliseconds."""
        self._work.add(self._key, size, ms)


@dataclass(frozen=True, kw_only=True)
class WorkKey:
    container: str
    version: str
    slice: str


class BatchDurations:
    """The last durations of one batch size, and how many there were in all."""

    def __init__(self) -> None:
        self.count = 0
        self.ms: list[float] = []

    def add(self, ms: float) -> None:
        if len(self.ms) < MOST_MS:
            self.ms.append(ms)
        else:
            self.ms[self.count % MOST_MS] = ms
        self.count += 1


class ContainerWork:
    """The batches of one container, by their size."""

    def __init__(self, key: WorkKey) -> None:
        self.key = key
        self.times: dict[int, BatchDurations] = {}


class WorkLog:
    """The batches that ran since the last `take`."""

    def __init__(self) -> None:
        self._works: dict[str, ContainerWork] = {}
        """By container."""
        self._kinds = 0
        """Pairs of container and batch size."""

    def add(self, worker: WorkKey, batch: int, ms: float) -> None:
        """Record that a batch of `batch` items ended well after `ms`."""
        work = self._works.get(worker.container)
        if work is None:
            work = self._works[worker.container] = ContainerWork(worker)
        times = work.times.get(batch)
        if times is None:
            if self._kinds >= MOST_KINDS or len(work.times) >= MOST_OF_ONE:
                return
            self._kinds += 1
            times = work.times[batch] = BatchDurations()
        times.add(ms)

    def take(self) -> tuple[BatchesRan, ...]:
        """Return everything and begin anew."""
        taken, self._works, self._kinds = self._works, {}, 0
        return tuple(
            BatchesRan(
                container=work.key.container,
                version=work.key.version,
                slice=work.key.slice,
                batch=batch,
                count=times.count,
                ms=tuple(times.ms),
            )
            for work in taken.values()
            for batch, times in work.times.items()
        )
