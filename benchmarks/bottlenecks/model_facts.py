"""What a platform would have counted of a model's run: its tallies, from which the product makes the window."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from benchmarks.bottlenecks.platform_model import ModelCall, PlatformModel
from pilotlight_core.model.messages.seeing.tallies import (
    BatchTally,
    FunctionTally,
    GatewayTally,
    HomeTally,
    SampledCall,
    SketchCounts,
)
from pilotlight_core.model.scaling.scale_bounds import bounds_of
from pilotlight_core.model.spec import SLO, Batching, FunctionSpec, MethodSpec
from pilotlight_core.model.units import GpuAsk
from pilotlight_gateway.diagnosis.diagnosis_window import (
    STAGES,
    CallSample,
    DiagnosisWindow,
    FlowFacts,
    QuotaFacts,
    SliceSpeed,
)
from pilotlight_gateway.diagnosis.window_facts import CountedWindow, ObservedFunction, diagnosis_window
from pilotlight_gateway.fleet.container_history import ContainerMinute
from pilotlight_gateway.tally.sketch import Sketch

DRAWN, SLOWEST = 160, 32
"""Calls that a platform has as examples of ten minutes."""


def window_of_model(model: PlatformModel, *, wanted_per_s: float | None = None) -> DiagnosisWindow:
    """The window of a run. What no specification can say, and what nobody counts yet, is put in its place."""
    plant, sums, seconds = model.plant, model.sums, model.plant.seconds
    loop = min(1.0, sums["loop"] / seconds / plant.gateways)
    gateways = tuple(GatewayTally(gateway=f"g{n}", loop_share=loop) for n in range(plant.gateways))
    counted = CountedWindow(seconds=seconds, tally=_tally(model), home=_home(model), gateways=gateways)
    window = diagnosis_window(counted, _observed(model), wanted_per_s)
    return replace(
        window,
        samples=_named(model, window),
        slots=plant.slots,
        wanted=float(model.most_wanted),
        memory_part=plant.memory_part,
        link_part=min(1.0, sums["link"] / seconds),
        began_inside=0,
    )


def _named(model: PlatformModel, window: DiagnosisWindow) -> tuple[CallSample, ...]:
    """The examples with their tenants, where there are several: platforms do not keep those."""
    if len(model.plant.tenants) == 1:
        return window.samples
    totals = {round(sum(call.spent.values()), 4): call.tenant.name for call in model.done}
    return tuple(replace(each, tenant=totals.get(round(sum(each.stages) / 1000, 4), "")) for each in window.samples)


def _tally(model: PlatformModel) -> FunctionTally:
    durations, stages = Sketch(), {stage: Sketch() for stage in STAGES}
    for call in model.done:
        durations.add(sum(call.spent.values()) * 1000)
        for stage, spent in call.spent.items():
            if spent > 0:
                stages[stage].add(spent * 1000)
    chance = random.Random(len(model.done))
    drawn = chance.sample(model.done, min(DRAWN, len(model.done)))
    slowest = sorted(model.done, key=lambda call: -sum(call.spent.values()))[:SLOWEST]
    ended_s = sum(sum(call.spent.values()) for call in model.done)
    return FunctionTally(
        arrivals=model.arrivals,
        ended=len(model.done),
        failures=dict(model.failed),
        durations=durations.value(),
        failed_durations=SketchCounts(sum=max(0.0, (model.left_s - ended_s) * 1000)),
        stages={stage: sketch.value() for stage, sketch in stages.items() if sketch.counts},
        batches=_batches(model),
        body_in=int(sum(call.tenant.body_bytes for call in model.done)),
        unread_ms=model.plant.unread_s * 1000 * len(model.done),
        inside_ms=model.sums["inside"] * 1000,
        inside=model.inside,
        samples=tuple(_sample(call, len(model.done) / len(drawn)) for call in drawn),
        slowest=tuple(_sample(call, 1.0) for call in slowest),
    )


def _batches(model: PlatformModel) -> dict[int, BatchTally]:
    calls: Counter[int] = Counter()
    ms: Counter[int] = Counter()
    for size, took in model.batches:
        kind = size if size <= 16 else 1 << (size.bit_length() - 1)
        calls[kind] += size
        ms[kind] += round((took + model.plant.unread_s) * 1e6)
    return {kind: BatchTally(count, ms[kind] / 1000) for kind, count in calls.items()}


def _sample(call: ModelCall, weight: float) -> SampledCall:
    return SampledCall(
        call_id=str(id(call)),
        at_ns=1,
        total_us=int(sum(call.spent.values()) * 1e6),
        stages_us=tuple(int(call.spent[stage] * 1e6) for stage in STAGES),
        batch_size=call.size,
        weight=weight,
    )


def _home(model: PlatformModel) -> HomeTally:
    sums = model.sums
    return HomeTally(
        seen_s=model.plant.seconds,
        queued_s=sums["queued"],
        running_s=sums["held"],
        ready_s=sums["ready"],
        starting_s=sums["starting"],
        wanted_s=sums["ready"] + sums["starting"],
        shortage_s=sums["shortage"],
        idle_credit_s=sums["idle_credit"],
        slots_s=sums["slots"],
    )


def _observed(model: PlatformModel) -> ObservedFunction:
    plant = model.plant
    batching = Batching(max_batch_size=plant.batch, wait_ms=plant.wait_s * 1000) if plant.batch > 1 else None
    spec = FunctionSpec(
        name="f",
        module="app",
        qualname="f",
        methods=(MethodSpec(name="", attribute="f", batching=batching),),
        gpu=(GpuAsk(type="H100"),),
        cpu=plant.cores,
        max_containers=plant.max_containers,
        min_containers=min(plant.min_containers, plant.max_containers),
        scaledown_window=min(plant.idle_s, 3_600.0),
        slo=SLO(p95_ms=plant.level_s * 1000),
    )
    started = model.starts - model.failed_starts
    history = ContainerMinute(
        0, model.starts, model.failed_starts, model.idle_ends, model.died, plant.load_s * 1000 * started, started,
        int(model.cpu_s * 1000), int(model.throttled_s * 1000),
        reason="ModuleNotFoundError: No module named 'torch'" if plant.starts_fail else "",
    )  # fmt: skip
    return ObservedFunction(
        ref="shop.f@v1",
        spec=spec,
        bounds=bounds_of(spec, None, 0.0),
        history=history,
        other_slices=_slices(model),
        free_places=max(0, plant.fits - round(model.sums["ready"] / plant.seconds)),
        owner_limit=_owner_limit(model),
        quotas=tuple(
            QuotaFacts(limit="requests_per_s", tenant=each.name, allowed=each.per_s)
            for each in plant.tenants
            if each.per_s < 1e9
        ),
        flows=_flows(model),
        breaker="open" if model.now < model.breaker_until else "closed",
    )


def _flows(model: PlatformModel) -> tuple[FlowFacts, ...]:
    held = sum(each.held_s for each in model.alone.values()) or 1.0
    return tuple(
        FlowFacts(
            tenant=name,
            slowdown=max(1.0, own.system_s / own.alone_s) if own.alone_s else 1.0,
            held_part=own.held_s / held,
            rate=own.ended / model.plant.seconds,
            mean_ms=own.system_s / max(1, own.ended) * 1000,
            run_ms=own.ran_s / max(1, own.ended) * 1000,
        )
        for name, own in model.alone.items()
    )


def _slices(model: PlatformModel) -> tuple[SliceSpeed, ...]:
    plant = model.plant
    if not plant.faster_slice:
        return ()
    ms = (plant.fixed_s + plant.each_s) * 1000 * plant.faster_slice
    return (SliceSpeed(what="a whole H100", batch=1, ms=ms),)


def _owner_limit(model: PlatformModel) -> QuotaFacts | None:
    limit = model.plant.owner_limit
    if not limit or model.most_wanted < limit:
        return None
    return QuotaFacts(limit="containers", tenant="owner", allowed=float(limit))
