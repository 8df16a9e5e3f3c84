"""From what gateways, homes and nodes have counted of a function to the facts that the diagnosis reads. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from pilotlight_core.model.messages.node_messages import ContainerReport, SliceKind, SliceReport
from pilotlight_core.model.messages.seeing.tallies import FunctionTally, GatewayTally, HomeTally, SampledCall
from pilotlight_core.model.scaling.scale_bounds import ScaleBounds
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_gateway.diagnosis.call_rows import ExampleCall, calibrated
from pilotlight_gateway.diagnosis.diagnosis_window import (
    EXECUTE,
    STAGES,
    BatchTimes,
    CallSample,
    DiagnosisWindow,
    EngineFacts,
    FlowFacts,
    QuotaFacts,
    SliceSpeed,
)
from pilotlight_gateway.fleet.container_history import ContainerMinute
from pilotlight_gateway.tally.sketch import count_of, mean_of, quantile_of
from pilotlight_gateway.tally.sketch import middle_of as middle_ms

DEATHS = ("container_died", "call_lost", "execution_timeout", "breaker_open")
BEARABLE_MS = 300.0
"""What a call may take whose function names no level..."""
BEARABLE_RUNS = 2.0
"""... or so many times as long as it runs, if that is more."""


@dataclass(frozen=True, kw_only=True)
class ObservedFunction:
    """What is known of a function and its containers beside what was counted of its calls."""

    ref: str
    """`app.function@v7`."""
    owner: str = ""
    spec: FunctionSpec
    bounds: ScaleBounds
    containers: Sequence[tuple[ContainerReport, SliceReport | None]] = ()
    history: ContainerMinute = field(default_factory=lambda: ContainerMinute(0))
    other_slices: tuple[SliceSpeed, ...] = ()
    free_places: int | None = None
    owner_limit: QuotaFacts | None = None
    quotas: tuple[QuotaFacts, ...] = ()
    flows: tuple[FlowFacts, ...] = ()
    breaker: str = "closed"
    engine: EngineFacts | None = None
    device_part: float | None = None


@dataclass(frozen=True, kw_only=True)
class CountedWindow:
    """What was counted of its calls in a window of so many seconds."""

    seconds: float
    tally: FunctionTally
    home: HomeTally
    gateways: tuple[GatewayTally, ...] = ()
    jobs: FunctionTally = field(default_factory=FunctionTally)
    """Of its runs of jobs."""


def diagnosis_window(
    counted: CountedWindow, function: ObservedFunction, wanted_per_s: float | None = None
) -> DiagnosisWindow:
    """The facts of a window."""
    tally, home, spec = counted.tally, counted.home, function.spec
    batching = max((m.batching for m in spec.methods if m.batching), key=lambda each: each.max_batch_size, default=None)
    samples = call_samples(tally)
    level = spec.slo.p95_ms
    seen_s = home.seen_s or counted.seconds
    history = function.history
    died = history.died if any(tally.failures.get(code) for code in DEATHS) else 0  # else they had nothing to do
    is_batched = batching is not None
    calls = max(1, tally.ended)
    return DiagnosisWindow(
        function=function.ref,
        owner=function.owner,
        seconds=counted.seconds,
        level_ms=level if level is not None else bearable_ms(tally),
        level_named=level is not None,
        wanted_per_s=wanted_per_s,
        arrivals=tally.arrivals,
        completed=tally.ended,
        failed=dict(tally.failures) | ({"cancelled": tally.gone} if tally.gone else {}),
        left_inside=tally.inside,
        began_inside=None,
        mean_inside=tally.inside_ms / 1000 / counted.seconds if tally.inside_ms else None,
        mean_ms=mean_of(tally.durations) if tally.ended else None,
        failed_s=tally.failed_durations.sum / 1000,
        p95_ms=quantile_of(tally.durations, 0.95) if tally.ended else None,
        longest_ms=max(tally.durations.most, tally.failed_durations.most, home.oldest_ms),
        samples=samples,
        batches=batch_times(tally, is_batched=is_batched),
        batches_off=counting_error(tally, is_batched=is_batched),
        body_bytes=(tally.body_in + tally.body_out) / calls,
        unread_ms=tally.unread_ms / calls,
        queued=home.queued_s / seen_s,
        containers=home.ready_s / seen_s,
        starting=home.starting_s / seen_s,
        wanted=max(home.wanted_s / seen_s, home.most_ready),
        shortage_part=home.shortage_s / seen_s,
        held_part=home.running_s / home.slots_s if home.slots_s else None,
        idle_credit_part=home.idle_credit_s / seen_s,
        starts=history.starts,
        failed_starts=history.failed_starts,
        idle_ends=history.ended + history.died - died,
        start_ms=history.start_ms / history.succeeded if history.succeeded else 0.0,
        start_error=history.reason if history.failed_starts else "",
        flows=function.flows,
        breaker=function.breaker,
        died=died,
        busy_s=metered_s(tally, _mean_ppm(function)),
        jobs_busy_s=metered_s(counted.jobs, _mean_ppm(function)) or 0.0,
        guest_cpu_s=history.cpu_ms / 1000 if history.cpu_ms else None,
        throttled_s=history.throttled_ms / 1000 if history.cpu_ms else None,
        cores=spec.most_cpu_millis / 1000,
        memory_part=history.memory_bytes / spec.memory,
        device_part=function.device_part,
        slice=_slice_text(function),
        on_gpu=spec.gpus > 0 and _is_on_gpu(function),
        other_slices=function.other_slices,
        free_places=function.free_places,
        owner_limit=function.owner_limit,
        quotas=function.quotas,
        slots=spec.slots,
        batch_most=spec.concurrency,
        is_batched=is_batched,
        batch_cost_most=batching.max_batch_cost if batching is not None else None,
        wait_ms=batching.wait_ms if batching is not None else 0.0,
        max_containers=function.bounds.most,
        min_containers=function.bounds.least,
        scaledown_s=function.bounds.window_s,
        gateways=max(1, len(counted.gateways)),
        loop_part=max((each.loop_share for each in counted.gateways), default=None),
        engine=function.engine,
    )


def bearable_ms(tally: FunctionTally) -> float:
    """The level of a function that names none."""
    run = tally.stages.get("execute")
    return max(BEARABLE_MS, BEARABLE_RUNS * quantile_of(run, 0.5) if run is not None else 0.0)


def call_samples(tally: FunctionTally) -> tuple[CallSample, ...]:
    """The examples of a tally, weighted by the sketch of all durations."""
    rows = {call.call_id: _row(call) for call in (*tally.samples, *tally.slowest) if not call.code}
    durations = zip(map(middle_ms, tally.durations.buckets), tally.durations.counts, strict=False)
    return calibrated(tuple(rows.values()), [(ms, float(count)) for ms, count in durations])


def _row(call: SampledCall) -> ExampleCall:
    stages = [us / 1000 for us in call.stages_us[: len(STAGES)]]
    return ExampleCall((*stages, *[0.0] * (len(STAGES) - len(stages))))


def batch_times(tally: FunctionTally, *, is_batched: bool) -> tuple[BatchTimes, ...]:
    """How long batches took, by size: how many there were is counted, how long they took the examples say.

    Sizes above 16 are counted together up to their double. Calls that ran at once without batches are batches of one,
    as long as they ran.
    """
    run = tally.stages.get("execute")
    if not is_batched or run is None:
        count = count_of(run) if run is not None else 0
        return (BatchTimes(1, count, mean_of(run)),) if run is not None and count else ()
    seen: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for call in {call.call_id: call for call in (*tally.samples, *tally.slowest) if not call.code}.values():
        if len(call.stages_us) > EXECUTE:
            seen[_size_class(call.batch_size)].append((call.batch_size, call.stages_us[EXECUTE] / 1000))
    found = []
    for size, batch in sorted(tally.batches.items()):
        if not (examples := seen.get(size)) or not batch.calls:
            continue
        mean = sum(count for count, _ in examples) / len(examples)
        found.append(BatchTimes(round(mean), batch.calls / mean, sum(ms for _, ms in examples) / len(examples)))
    return tuple(found)


def metered_s(tally: FunctionTally, ppm: float) -> float | None:
    """The time in which containers ran calls, from what these were billed of their slices; None: nothing was."""
    gpu_ms = sum(batch.gpu_ms for batch in tally.batches.values())
    return gpu_ms * WHOLE_DEVICE / max(1.0, ppm) / 1000 if gpu_ms else None


def counting_error(tally: FunctionTally, *, is_batched: bool) -> float:
    """How far the mean time of batches may be off, since it is that of examples: two standard errors, relative."""
    if not is_batched:
        return 0.0
    times = [call.stages_us[EXECUTE] for call in tally.samples if len(call.stages_us) > EXECUTE]
    if len(times) < 3 or not (mean := sum(times) / len(times)):
        return 1.0
    spread = sum((each - mean) ** 2 for each in times) / (len(times) - 1)
    return float(2 * (spread / len(times)) ** 0.5 / mean)


def _size_class(size: int) -> int:
    return size if size <= 16 else 1 << (size.bit_length() - 1)


def _mean_ppm(function: ObservedFunction) -> float:
    parts = [cut.ppm for _, cut in function.containers if cut is not None]
    return sum(parts) / len(parts) if parts else float(WHOLE_DEVICE)


def _is_on_gpu(function: ObservedFunction) -> bool:
    kinds = [cut.kind for _, cut in function.containers if cut is not None]
    return not kinds or any(kind is not SliceKind.CPU for kind in kinds)


def _slice_text(function: ObservedFunction) -> str:
    for _, cut in function.containers:
        if cut is not None and cut.kind is not SliceKind.CPU:
            part = "" if cut.ppm >= WHOLE_DEVICE else f"{cut.ppm / WHOLE_DEVICE:.0%} of "
            return f"{part}{cut.gpu_type or 'a GPU'}"
    return "a CPU slot"
