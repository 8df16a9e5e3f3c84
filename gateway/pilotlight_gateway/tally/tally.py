"""The counts of one function's calls while they are added up: of a minute that goes on, or of several parts."""

from __future__ import annotations

import random
from heapq import heappush, heapreplace

from pilotlight_core.model.messages.seeing.tallies import (
    MOST_SAMPLES,
    MOST_SIZES,
    MOST_SLOWEST,
    MOST_UNITS,
    STAGES,
    BatchTally,
    FunctionTally,
    SampledCall,
)
from pilotlight_core.model.spec import SLO
from pilotlight_gateway.tally.sketch import Sketch

SAMPLES = 16
"""Calls that are drawn of a minute."""
SLOWEST = 8
"""The slowest of a minute."""
ALL_STAGES = 64
"""So many calls of a minute have all their stages counted."""
MOST_STEPS = 32
"""Steps of starts that have sums of their own."""
PLACES = {stage: place for place, stage in enumerate(STAGES)}
NS_PER_MS = 1_000_000
MOST_MS, MOST_NS, LARGEST_BATCH = 1e12, 1 << 62, 1 << 20
"""What a message may say: what agents report may be anything, and must not make a window that nobody can read."""
NO_SLO = SLO()

Sampled = tuple[str, int, float, dict[str, float], int, int, bool]
"""A call's id, when it ended, how long it took, its stages, batch size, attempts, and whether it was cold."""


class TallyCounts:
    """Of one function, in a window. Instants are unix nanoseconds."""

    __slots__ = (
        "_drawn", "_heap", "_merged", "_merged_slowest", "_random", "arrivals", "attempts", "bad", "batches",
        "body_in", "body_out", "busy_ns", "cold_calls", "cold_steps", "durations", "ended", "failed_durations",
        "failures", "first_chunks", "gaps", "gone", "good", "inside", "inside_at", "inside_ms", "levels", "retried",
        "sampled", "since_ns", "stages", "units", "unread_ms", "until_ns",
    )  # fmt: skip

    def __init__(self, since_ns: int, levels: SLO = NO_SLO) -> None:
        """`levels`: the function's own service levels."""
        self.levels = levels
        self.since_ns = since_ns
        self.until_ns = since_ns
        self.arrivals = self.ended = self.gone = self.cold_calls = self.attempts = self.retried = 0
        self.body_in = self.body_out = self.inside = self.busy_ns = 0
        self.unread_ms = self.inside_ms = 0.0
        self.inside_at = since_ns
        """Up to where `inside_ms` is right."""
        self.failures: dict[str, int] = {}
        self.good: dict[str, int] = {}
        self.bad: dict[str, int] = {}
        self.durations, self.failed_durations = Sketch(), Sketch()
        self.first_chunks, self.gaps = Sketch(), Sketch()
        self.stages: dict[str, Sketch] = {}
        self.cold_steps: dict[str, float] = {}
        self.batches: dict[int, tuple[int, float]] = {}
        self.units: dict[str, int] = {}
        self.sampled = 0
        """Calls that were offered to be drawn."""
        self._drawn: list[Sampled] = []
        self._heap: list[tuple[float, int, Sampled]] = []
        """The slowest, the fastest of them first."""
        self._merged: list[SampledCall] = []
        """Of parts that were added."""
        self._merged_slowest: list[SampledCall] = []
        self._random = random.random

    # -- calls ---------------------------------------------------------------------------------------------------

    def add_inside(self, change: int, at_ns: int) -> None:
        """So many more calls are inside, or fewer, from an instant on."""
        if at_ns > self.inside_at:
            self.inside_ms += self.inside * ((at_ns - self.inside_at) / NS_PER_MS)
            self.inside_at = at_ns
        self.inside = max(0, self.inside + change)

    def add_stages(self, stages: dict[str, float]) -> None:
        """Where a call spent its time. Of a minute with many, each fourth counts for four: half of all that a call
        costs here is its stages.
        """
        times = 1
        if self.ended > ALL_STAGES:
            if self.ended & 3:
                return
            times = 4
        known = self.stages
        for stage, ms in stages.items():
            if ms > 0.0:
                sketch = known.get(stage)
                if sketch is None:
                    if stage not in PLACES:
                        continue
                    sketch = known[stage] = Sketch()
                sketch.add(ms, times)

    def add_batch(self, size: int, gpu_ms: float) -> None:
        """A call ran in a batch of this size."""
        if size > 16:
            size = min(1 << (size.bit_length() - 1), LARGEST_BATCH)
        batches = self.batches
        found = batches.get(size)
        if found is not None:
            batches[size] = (found[0] + 1, found[1] + gpu_ms)
        elif len(batches) < MOST_SIZES:
            batches[size] = (1, gpu_ms)

    def add_steps(self, steps: dict[str, float]) -> None:
        """A call waited for the start of a container."""
        self.cold_calls += 1
        known = self.cold_steps
        for step, ms in steps.items():
            if step in known or len(known) < MOST_STEPS:
                known[step] = min(known.get(step, 0.0) + ms, MOST_MS)

    def add_units(self, units: dict[str, int]) -> None:
        """What a call counted."""
        known = self.units
        for unit, count in units.items():
            if unit in known or len(known) < MOST_UNITS:
                known[unit] = min(known.get(unit, 0) + count, 1 << 53)

    def note_level(self, level: str, *, good: bool) -> None:
        """A call has kept a service level, or not."""
        counts = self.good if good else self.bad
        counts[level] = counts.get(level, 0) + 1

    def offer(
        self,
        call_id: str,
        at_ns: int,
        total_ms: float,
        stages: dict[str, float],
        batch_size: int,
        attempts: int,
        is_cold: bool,
    ) -> None:
        """A call that may be drawn: each is as likely as any other (Vitter's algorithm R)."""
        self.sampled += 1
        drawn, heap = self._drawn, self._heap
        place = len(drawn)
        if place >= SAMPLES:
            place = int(self._random() * self.sampled)
        is_slow = len(heap) < SLOWEST or total_ms > heap[0][0]
        if place >= SAMPLES and not is_slow:
            return
        call = (call_id, at_ns, total_ms, stages, batch_size, attempts, is_cold)
        if place < len(drawn):
            drawn[place] = call
        elif place < SAMPLES:
            drawn.append(call)
        if is_slow:
            if len(heap) < SLOWEST:
                heappush(heap, (total_ms, self.sampled, call))
            else:
                heapreplace(heap, (total_ms, self.sampled, call))

    # -- parts ---------------------------------------------------------------------------------------------------

    def merge(self, other: FunctionTally) -> None:
        """Add what another part counted."""
        if other.since_ns and (not self.since_ns or other.since_ns < self.since_ns):
            self.since_ns = other.since_ns
        if other.until_ns > self.until_ns:
            self.until_ns, self.inside = other.until_ns, other.inside
        elif other.until_ns == self.until_ns:
            self.inside += other.inside
        self.arrivals += other.arrivals
        self.ended += other.ended
        self.gone += other.gone
        self.cold_calls += other.cold_calls
        self.attempts += other.attempts
        self.retried += other.retried
        self.body_in += other.body_in
        self.body_out += other.body_out
        self.busy_ns += other.busy_ns
        self.unread_ms += other.unread_ms
        self.inside_ms += other.inside_ms
        for counts, more in ((self.failures, other.failures), (self.good, other.good), (self.bad, other.bad)):
            for name, count in more.items():
                if name != "availability" or counts is not self.good:  # that is `ended`
                    counts[name] = counts.get(name, 0) + count
        self._merge_sketches(other)
        for step, ms in other.cold_steps.items():
            if step in self.cold_steps or len(self.cold_steps) < MOST_STEPS:
                self.cold_steps[step] = min(self.cold_steps.get(step, 0.0) + ms, MOST_MS)
        for size, batch in other.batches.items():
            calls, gpu_ms = self.batches.get(size, (0, 0.0))
            self.batches[size] = (calls + batch.calls, gpu_ms + batch.gpu_ms)
        self.add_units(other.units)
        self._merged += other.samples
        self._merged_slowest += other.slowest

    def _merge_sketches(self, other: FunctionTally) -> None:
        self.durations.merge(other.durations)
        self.failed_durations.merge(other.failed_durations)
        self.first_chunks.merge(other.first_chunks)
        self.gaps.merge(other.gaps)
        for stage, counts in other.stages.items():
            sketch = self.stages.get(stage)
            if sketch is None:
                if stage not in PLACES:
                    continue
                sketch = self.stages[stage] = Sketch()
            sketch.merge(counts)

    # -- its value -----------------------------------------------------------------------------------------------

    @property
    def buckets(self) -> int:
        """Of all its sketches together: what most of its memory is for."""
        own = len(self.durations.counts) + len(self.failed_durations.counts)
        own += len(self.first_chunks.counts) + len(self.gaps.counts)
        return own + sum([len(sketch.counts) for sketch in self.stages.values()])

    @property
    def is_empty(self) -> bool:
        """Whether it tells nothing."""
        return not (self.arrivals or self.ended or self.failures or self.gone or self.inside or self.inside_ms)

    def value(self, until_ns: int, samples: int = MOST_SAMPLES, slowest: int = MOST_SLOWEST) -> FunctionTally:
        """What was counted until an instant, with so many examples at most."""
        return FunctionTally(
            since_ns=self.since_ns,
            until_ns=until_ns,
            arrivals=self.arrivals,
            ended=self.ended,
            failures=dict(self.failures),
            gone=self.gone,
            good={"availability": self.ended} | self.good if self.ended else dict(self.good),
            bad=dict(self.bad),
            durations=self.durations.value(),
            failed_durations=self.failed_durations.value(),
            stages={stage: sketch.value() for stage, sketch in self.stages.items()},
            first_chunks=self.first_chunks.value(),
            gaps=self.gaps.value(),
            cold_calls=self.cold_calls,
            cold_steps=dict(self.cold_steps),
            batches={size: BatchTally(calls, min(gpu_ms, MOST_MS)) for size, (calls, gpu_ms) in self.batches.items()},
            attempts=self.attempts,
            retried=self.retried,
            body_in=self.body_in,
            body_out=self.body_out,
            busy_ns=min(self.busy_ns, MOST_NS),
            units=dict(self.units),
            unread_ms=self.unread_ms,
            inside_ms=self.inside_ms,
            inside=self.inside,
            samples=self._samples(samples),
            slowest=self._slowest(slowest),
        )

    def _samples(self, most: int) -> tuple[SampledCall, ...]:
        if not most:
            return ()
        weight = self.sampled / len(self._drawn) if self._drawn else 1.0
        found = [sample_of(call, weight) for call in self._drawn] + self._merged
        if len(found) <= most:
            return tuple(found)
        # Each stands for more calls now, those that are left out among them.
        kept, more = random.sample(found, most), len(found) / most
        return tuple([_weighted(call, call.weight * more) for call in kept])

    def _slowest(self, most: int) -> tuple[SampledCall, ...]:
        found = [sample_of(call, 1.0) for _, _, call in self._heap] + self._merged_slowest
        found.sort(key=_total_of, reverse=True)
        return tuple(found[:most])


def _total_of(call: SampledCall) -> int:
    return call.total_us


def sample_of(call: Sampled, weight: float) -> SampledCall:
    """A call as it is told."""
    call_id, at_ns, total_ms, stages, size, attempts, is_cold = call
    total_us = max(0, int(total_ms * 1000.0))
    times = [0] * len(STAGES)
    for stage, ms in stages.items():
        place = PLACES.get(stage)
        if place is not None:
            times[place] = max(0, int(ms * 1000.0))
    while times and not times[-1]:
        times.pop()
    return SampledCall(call_id, at_ns, total_us, tuple(times), "", size, attempts, is_cold, weight)


def _weighted(call: SampledCall, weight: float) -> SampledCall:
    return SampledCall(
        call.call_id, call.at_ns, call.total_us, call.stages_us, call.code, call.batch_size, call.attempts,
        call.is_cold, weight,
    )  # fmt: skip


def stages_of(call: SampledCall) -> dict[str, float]:
    """Where a call spent its time, in milliseconds: all stages, in their order."""
    times = call.stages_us
    return {stage: times[place] / 1000.0 if place < len(times) else 0.0 for place, stage in enumerate(STAGES)}


def gpu_ms_of(tally: FunctionTally) -> float:
    """What the calls of a tally were billed of whole GPUs together."""
    return sum([batch.gpu_ms for batch in tally.batches.values()])


def calls_of(tally: FunctionTally) -> int:
    """Calls that ended, well or not."""
    return tally.ended + sum(tally.failures.values())
