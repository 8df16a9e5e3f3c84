"""What a platform would have counted of a model's run, as the window that the diagnosis reads."""

from __future__ import annotations

import random

from benchmarks.bottlenecks.platform_model import PlatformModel
from pilotlight_gateway.diagnosis.call_rows import CallRow, calibrated
from pilotlight_gateway.diagnosis.diagnosis_window import (
    STAGES,
    BatchTimes,
    DiagnosisWindow,
    FlowFacts,
    QuotaFacts,
    SliceSpeed,
)
from pilotlight_gateway.diagnosis.wait_model import weighted_quantile

DRAWN, SLOWEST = 160, 32
"""Calls of a window of ten minutes that a platform keeps as examples."""


def window_of_model(model: PlatformModel, *, wanted_per_s: float | None = None) -> DiagnosisWindow:
    """The window of a run."""
    plant, sums, seconds = model.plant, model.sums, model.plant.seconds
    ready = sums["ready"] / seconds
    held = sum(each.held_s for each in model.alone.values()) or 1.0
    totals = sorted(sum(call.spent.values()) * 1000 for call in model.done)
    return DiagnosisWindow(
        function="shop.f@v1",
        seconds=seconds,
        level_ms=plant.level_s * 1000,
        wanted_per_s=wanted_per_s,
        arrivals=model.arrivals,
        completed=len(model.done),
        failed=dict(model.failed),
        left_inside=model.inside,
        mean_inside=sums["inside"] / seconds,
        mean_ms=sum(totals) / len(totals) if totals else None,
        failed_s=max(0.0, model.left_s - sum(totals) / 1000),
        p95_ms=weighted_quantile([(ms, 1.0) for ms in totals], 0.95) if totals else None,
        samples=_examples(model, totals),
        batches=_batches(model),
        body_bytes=sum(call.tenant.body_bytes for call in model.done) / max(1, len(model.done)),
        unread_ms=plant.unread_s * 1000,
        queued=sums["queued"] / seconds,
        ready=ready,
        starting=sums["starting"] / seconds,
        wanted=float(model.most_wanted),
        shortage_part=sums["shortage"] / seconds,
        held_part=sums["held"] / sums["slots"] if sums["slots"] else None,
        idle_credit_part=sums["idle_credit"] / seconds,
        starts=model.starts,
        failed_starts=model.failed_starts,
        idle_ends=model.idle_ends,
        start_ms=plant.load_s * 1000,
        start_error="ModuleNotFoundError: No module named 'torch'" if plant.starts_fail else "",
        flows=tuple(
            FlowFacts(
                tenant=name,
                slowdown=max(1.0, own.system_s / own.alone_s) if own.alone_s else 1.0,
                held_part=own.held_s / held,
                rate=own.ended / seconds,
                mean_ms=own.system_s / max(1, own.ended) * 1000,
                run_ms=own.ran_s / max(1, own.ended) * 1000,
            )
            for name, own in model.alone.items()
        ),
        breaker="open" if model.now < model.breaker_until else "closed",
        died=model.died,
        busy_s=model.busy_s,
        guest_cpu_s=model.cpu_s,
        throttled_s=model.throttled_s,
        cores=plant.cores,
        memory_part=plant.memory_part,
        other_slices=_slices(model),
        slots=plant.slots,
        batch_most=plant.batch,
        is_batched=plant.batch > 1,
        wait_ms=plant.wait_s * 1000,
        max_containers=plant.max_containers,
        min_containers=plant.min_containers,
        scaledown_s=min(plant.idle_s, 3_600.0),
        free_places=max(0, plant.fits - round(ready)),
        owner_limit=_owner_limit(model),
        quotas=tuple(
            QuotaFacts(limit="requests_per_s", tenant=each.name, allowed=each.per_s)
            for each in plant.tenants
            if each.per_s < 1e9
        ),
        gateways=plant.gateways,
        loop_part=min(1.0, sums["loop"] / seconds / plant.gateways),
        link_part=min(1.0, sums["link"] / seconds),
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


def _batches(model: PlatformModel) -> tuple[BatchTimes, ...]:
    found: dict[int, tuple[int, float]] = {}
    for size, took in model.batches:
        count, ms = found.get(size, (0, 0.0))
        found[size] = (count + 1, ms + (took + model.plant.unread_s) * 1000)
    return tuple(BatchTimes(size, count, ms / count) for size, (count, ms) in sorted(found.items()))


def _examples(model: PlatformModel, totals: list[float]) -> tuple:  # type: ignore[type-arg]
    chance = random.Random(len(model.done))
    drawn = chance.sample(model.done, min(DRAWN, len(model.done)))
    slowest = sorted(model.done, key=lambda call: -sum(call.spent.values()))[:SLOWEST]
    rows = {
        id(call): CallRow(tuple(call.spent[stage] * 1000 for stage in STAGES), call.tenant.name)
        for call in (*drawn, *slowest)
    }
    buckets = [(ms, 1.0) for ms in totals]
    return calibrated(tuple(rows.values()), buckets)
