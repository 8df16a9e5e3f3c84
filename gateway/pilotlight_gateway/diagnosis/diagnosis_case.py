"""What hypotheses ask of a window again and again, computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from pilotlight_gateway.diagnosis.call_samples import StageChange, changed, hurt_part, mean_stage, tail_ms
from pilotlight_gateway.diagnosis.diagnosis_window import (
    BATCH_WAIT,
    EXECUTE,
    QUEUE,
    STAGES,
    CallSample,
    DiagnosisWindow,
    StageTimes,
)
from pilotlight_gateway.diagnosis.suspects import CallTrouble
from pilotlight_gateway.diagnosis.wait_model import BatchLine, batch_line, wait_factor

SAMPLES_AT_MOST = 4_000
"""More would say the same more slowly."""
QUOTA_CODES = ("rate_limited",)
BUDGET_CODES = ("budget_exhausted",)
FULL_CODES = ("queue_full", "no_capacity", "deadline_exceeded", "overloaded", "starting")
FAILING_CODES = ("load_failed", "breaker_open", "container_died", "call_lost", "internal", "execution_timeout")
NOT_OFFERED = (
    *QUOTA_CODES, *BUDGET_CODES, "bad_input", "bad_request", "unauthenticated", "forbidden", "too_large",
    "unsupported_media_type", "breaker_open", "quota_exceeded", "idempotency_key_in_use",
)  # fmt: skip
"""Calls that would have asked no container for anything."""
REFUSED_PART = 0.001
"""Of all calls; fewer errors are no trouble."""
FEW = 3
"""So many errors may be chance."""
HIGH = 0.85
"""Beyond this part of a capacity waits grow without bound, for any real variation."""
OWN_WORK = 0.1
"""The part of the time in which containers run calls from which their processors' own work counts."""
COMFORTABLE = 0.7
"""The part that an action aims at."""


@dataclass(frozen=True)
class DiagnosisCase:
    """A window, and the calls that are looked at: those of one tenant, or as they would be after a change."""

    window: DiagnosisWindow
    samples: tuple[CallSample, ...]
    severity: dict[CallTrouble, float] = field(default_factory=dict)
    """The part of the calls that each trouble hurts; of those that there are."""

    # -- calls

    @cached_property
    def means(self) -> tuple[float, ...]:
        """Mean milliseconds by stage."""
        return tuple(mean_stage(self.samples, stage) for stage in range(len(STAGES)))

    @cached_property
    def mean_ms(self) -> float:
        return sum(self.means)

    @cached_property
    def tail_ms(self) -> float:
        """The 95th percentile of the calls that are looked at."""
        return tail_ms(self.samples)

    @cached_property
    def level_ms(self) -> float:
        return self.window.level_ms

    def part_of(self, *stages: int) -> float:
        """The part of all time that calls spent in these stages."""
        return sum(self.means[stage] for stage in stages) / self.mean_ms if self.mean_ms else 0.0

    def after(self, change: StageChange) -> tuple[float, dict[CallTrouble, float]]:
        """The 95th percentile after a change of every call's stages, and what that is of the trouble."""
        then = tail_ms(changed(self.samples, change))
        if CallTrouble.SLOW not in self.severity:
            return then, {}
        excess = max(self.tail_ms - self.level_ms, 0.05 * self.level_ms)
        return then, {CallTrouble.SLOW: max(0.0, min(1.0, (self.tail_ms - then) / excess))}

    # -- capacity

    @cached_property
    def line(self) -> BatchLine:
        times = self.window.batches
        if self.window.is_batched:
            return batch_line(times)
        count = sum(each.count for each in times)  # of all tenants, whoever's calls are looked at
        return BatchLine(sum(each.count * each.ms for each in times) / count if count else self.means[EXECUTE], 0.0)

    @cached_property
    def size(self) -> float:
        """Of a batch on average, as a call sees it not, but as the device does."""
        count = sum(each.count for each in self.window.batches)
        if not self.window.is_batched or not count:
            return 1.0
        return max(1.0, sum(each.count * each.size for each in self.window.batches) / count)

    @cached_property
    def took_ms(self) -> float:
        """How long a batch of the mean size takes."""
        return self.line.ms(self.size)

    @cached_property
    def full_size(self) -> int:
        """Calls that a container runs at once at most."""
        return max(1, self.window.batch_most)

    @property
    def ready(self) -> float:
        return max(1.0, self.window.containers)

    @cached_property
    def offered(self) -> float:
        """Calls per second that asked for a container, those that found no room among them."""
        window = self.window
        return max(0.0, (window.arrivals - window.codes(*NOT_OFFERED)) / window.seconds)

    @cached_property
    def rho(self) -> float:
        """The part of the capacity at full batches that is asked for: what is busy may have room in its batches."""
        return self.offered * self.line.ms(self.full_size) / 1000 / self.full_size / self.ready

    @cached_property
    def busy(self) -> float:
        """The part of their time in which containers ran calls."""
        if self.window.busy_s is None:
            return min(1.0, self.rho)
        return min(1.0, self.window.busy_s / max(1e-9, self.window.containers * self.window.seconds))

    @cached_property
    def jobs_busy(self) -> float:
        """The part of their time in which containers ran jobs."""
        window = self.window
        return min(1.0, window.jobs_busy_s / max(1e-9, window.containers * window.seconds))

    @cached_property
    def loop(self) -> float:
        return self.window.loop_part or 0.0

    @cached_property
    def link(self) -> float:
        return self.window.link_part or 0.0

    @cached_property
    def limit_of_batches(self) -> bool:
        """Whether batches stay small however long the queue: by the calls that a container takes, or by their cost."""
        window = self.window
        if window.batch_cost_most is not None and self.size < 0.6 * self.full_size and self.busy >= HIGH:
            return True
        full = window.held_part is not None and window.held_part >= HIGH
        return window.slots < self.full_size and (self.busy >= HIGH or full)

    @cached_property
    def cpu_part(self) -> float:
        """The part of the time in which containers run calls that is work of their processors, not of their device."""
        window = self.window
        if not window.on_gpu or window.busy_s is None or window.guest_cpu_s is None or window.busy_s <= 0:
            return 0.0
        if window.guest_cpu_s < OWN_WORK * window.busy_s:
            return 0.0  # waiting for a processor now and then is no work
        used = window.guest_cpu_s / min(1.0, max(1e-3, window.cores)) + (window.throttled_s or 0.0)
        return min(1.0, used / window.busy_s)

    def wait_ms(self, containers: float) -> float:
        """The mean wait before so many containers at the present load."""
        return self.took_ms * wait_factor(containers, min(0.99, self.rho * self.ready / max(1.0, containers)))

    def with_containers(self, containers: float) -> StageChange:
        """What so many containers make of a call: it waits no longer than their queue makes it."""
        wait, forming = self.wait_ms(containers), max(self.window.wait_ms, self.took_ms)

        def change(stages: StageTimes) -> StageTimes:
            new = list(stages)
            new[QUEUE] = min(new[QUEUE], wait)
            new[BATCH_WAIT] = min(new[BATCH_WAIT], forming)
            return tuple(new)

        return change

    @property
    def what(self) -> str:
        return self.window.function

    @property
    def devices(self) -> str:
        return "slices" if self.window.on_gpu else "containers"


def case_of(window: DiagnosisWindow, tenant: str = "") -> DiagnosisCase:
    """The case of a window; with `tenant`, of that caller's calls."""
    samples = tuple(each for each in window.samples if tenant in ("", each.tenant))
    samples = samples[:: max(1, math.ceil(len(samples) / SAMPLES_AT_MOST))]
    return DiagnosisCase(window, samples, _troubles(window, samples, is_whole=not tenant))


def _troubles(window: DiagnosisWindow, samples: tuple[CallSample, ...], *, is_whole: bool) -> dict[CallTrouble, float]:
    found: dict[CallTrouble, float] = {}
    tail = window.p95_ms if is_whole and window.p95_ms is not None else tail_ms(samples)
    if samples and tail > window.level_ms:
        found[CallTrouble.SLOW] = max(0.05, hurt_part(samples, window.level_ms))
    for trouble, codes in (
        (CallTrouble.LIMITED, QUOTA_CODES + BUDGET_CODES),
        (CallTrouble.FULL, FULL_CODES),
        (CallTrouble.FAILING, FAILING_CODES),
    ):
        failed = window.codes(*codes)
        if failed > FEW and failed > REFUSED_PART * window.arrivals:
            found[trouble] = failed / max(1, window.arrivals)
    if window.wanted_per_s is not None and window.rate < 0.9 * window.wanted_per_s:
        found[CallTrouble.RATE] = 1 - window.rate / window.wanted_per_s
    engine = window.engine
    if engine is not None:
        late = max(engine.gap_ms / engine.gap_level_ms, engine.first_token_ms / engine.first_token_level_ms) - 1
        if late > 0:
            found[CallTrouble.TOKENS] = min(1.0, late)
            found.pop(CallTrouble.SLOW, None)  # how long an answer takes is how long it is
        else:
            found.pop(CallTrouble.SLOW, None)
    if window.failed_starts > 1 and window.failed_starts >= 0.5 * window.starts:
        found[CallTrouble.FAILING] = max(found.get(CallTrouble.FAILING, 0.0), 0.5)
    return found
