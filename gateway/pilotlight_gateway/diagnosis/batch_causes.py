"""Batches that are too small, wait too long, or are too large for the level."""

from __future__ import annotations

import math

from pilotlight_gateway.diagnosis.call_samples import with_stages
from pilotlight_gateway.diagnosis.diagnosis_case import COMFORTABLE, HIGH, DiagnosisCase
from pilotlight_gateway.diagnosis.diagnosis_window import BATCH_WAIT, EXECUTE, QUEUE, TRANSPORT, StageTimes
from pilotlight_gateway.diagnosis.suspects import CallTrouble, Cure, CureCost, Promise, Suspect
from pilotlight_gateway.diagnosis.wait_model import wait_factor


def batch_starved(case: DiagnosisCase) -> Suspect | None:
    """Containers work all the time on small batches, since they take few calls at a time."""
    window = case.window
    waiting = window.queued + case.offered * case.means[BATCH_WAIT] / 1000  # some have a slot, and no place in a batch
    if not case.limit_of_batches or case.rho >= HIGH or waiting <= 1 or not window.is_batched:
        return None
    most = case.full_size
    gathers = case.offered / 1000 / case.ready  # calls per ms and container
    even = gathers * case.line.fixed_ms / max(1e-9, 1 - gathers * case.line.each_ms)
    grown = min(float(most), max(case.size, even))  # what gathers while the batch before it runs
    grown_ms = case.line.ms(grown)

    def fed(stages: StageTimes) -> StageTimes:
        execute = stages[EXECUTE] * grown_ms / max(1e-9, case.took_ms)
        wait = min(stages[BATCH_WAIT] + grown_ms / 2, window.wait_ms + grown_ms)
        return with_stages(stages, {QUEUE: 0.0, BATCH_WAIT: wait, EXECUTE: execute})

    then, gains = case.after(fed)
    return Suspect(
        name="starved",
        gains=gains | {CallTrouble.FULL: 0.9, CallTrouble.RATE: 0.8},
        says=(
            f"Batch-starved: containers of {case.what} work {case.busy:.0%} of the time on batches of {case.size:.1f}, "
            f"since {_why_small(case)} where a batch may have {most}."
        ),
        evidence=(
            f"{waiting:.3g} calls wait; full batches would need {case.rho:.0%} of these {case.devices}",
            (
                f"a call takes {case.took_ms / case.size:.3g} ms of a device, in full batches "
                f"{case.line.ms(most) / most:.3g} ms"
            ),
        ),
        cures=(_larger_batches(case), Cure(cost=CureCost.GPU_TIME, what="more containers")),
        promises=(
            Promise(metric="gpu_ms_per_call", value=grown_ms / grown, tolerance=0.1, at_most=True),
            Promise(metric="p95_ms", value=then, tolerance=0.6, at_most=True),
        ),
        change=fed,
    )


def _fewer_calls_each(case: DiagnosisCase, fits: int, load: float) -> tuple[Cure, ...]:
    """How batches become smaller: by their bound, or, where that leaves too little capacity, by more containers."""
    more = math.ceil(case.ready * load / COMFORTABLE)
    bound = Cure(cost=CureCost.VERSION, what=f"max_batch_size={fits}", changes={"max_batch_size": float(fits)})
    apart = Cure(
        cost=CureCost.GPU_TIME,
        what=f"{more} containers, so that each gathers fewer calls",
        command=f"pilotlight scale {case.what.partition('@')[0]} --max {max(more, case.window.max_containers)}",
        changes={"max_containers": float(max(more, case.window.max_containers))},
    )
    return (bound, apart) if load < HIGH else (apart, bound)


def _why_small(case: DiagnosisCase) -> str:
    window = case.window
    if window.slots < case.full_size:
        return f"they take only {window.slots} calls at a time"
    return f"max_batch_cost={window.batch_cost_most:g} ends them"


def _larger_batches(case: DiagnosisCase) -> Cure:
    most, window = case.full_size, case.window
    if window.slots < most:
        return Cure(
            cost=CureCost.VERSION,
            what=f"let a container take {most} calls: @concurrent(max_inputs={most})",
            changes={"slots": float(most)},
        )
    cost = math.ceil((window.batch_cost_most or 0.0) * most / case.size)
    return Cure(
        cost=CureCost.VERSION,
        what=f"max_batch_cost={cost}, as much as {most} calls cost",
        changes={"max_batch_cost": float(cost)},
    )


def batches_wait(case: DiagnosisCase) -> Suspect | None:
    """Batches wait for company that does not come."""
    window = case.window
    in_slot = case.means[TRANSPORT] + case.means[BATCH_WAIT] + case.means[EXECUTE]
    if not window.is_batched or case.means[BATCH_WAIT] <= 0.3 * in_slot or case.busy >= 0.8:
        return None
    if case.size >= 0.6 * case.full_size or window.wait_ms <= 0.1 * case.level_ms:
        return None
    wait_ms = max(1.0, round(0.1 * case.level_ms))
    each = case.offered / case.ready
    size = min(window.slots, case.full_size)  # slots are held while a batch waits: calls queue for that
    load = case.offered * (wait_ms + case.line.ms(size)) / 1000 / size / case.ready
    queue = (wait_ms + case.took_ms) * wait_factor(case.ready, load)

    def shorter(stages: StageTimes) -> StageTimes:
        return with_stages(stages, {BATCH_WAIT: min(stages[BATCH_WAIT], wait_ms), QUEUE: min(stages[QUEUE], queue)})

    then, gains = case.after(shorter)
    return Suspect(
        name="waits",
        gains=gains,
        says=(
            f"Batches of {case.what} wait for company that does not come: {case.means[BATCH_WAIT]:.0f} ms for batches "
            f"of {case.size:.1f} of {case.full_size}."
        ),
        evidence=(
            f"{each:.3g}/s a container bring {each * window.wait_ms / 1000:.1f} calls in {window.wait_ms:g} ms",
            f"containers are busy {case.busy:.0%} of the time",
        ),
        cures=(
            Cure(
                cost=CureCost.SETTING,
                what=f"wait_ms={wait_ms:.0f} in its batching",
                changes={"wait_ms": wait_ms},
            ),
            Cure(cost=CureCost.SETTING, what="fewer containers, so that each sees more calls"),
        ),
        promises=(Promise(metric="p95_ms", value=then, tolerance=0.3, at_most=True),),
        change=shorter,
    )


def batches_too_large(case: DiagnosisCase) -> Suspect | None:
    """A full batch takes longer than the level, while smaller ones would carry the load."""
    window, line = case.window, case.line
    if not window.is_batched or line.each_ms <= 0 or case.size < 2:
        return None
    if line.ms(case.size) < 0.7 * case.level_ms or line.ms(1) > 0.5 * case.level_ms:
        return None
    fits = math.floor((0.45 * case.level_ms - line.fixed_ms) / line.each_ms)
    if fits < 1 or fits >= case.size:
        return None
    load = case.offered * line.ms(fits) / 1000 / fits / case.ready
    if load >= 2 * HIGH:
        return None  # it would take several times as many containers
    took = line.ms(fits)

    def smaller(stages: StageTimes) -> StageTimes:
        return with_stages(
            stages,
            {
                EXECUTE: stages[EXECUTE] * took / max(1e-9, case.took_ms),
                BATCH_WAIT: min(stages[BATCH_WAIT], took),
                QUEUE: min(stages[QUEUE], took),
            },
        )

    then, gains = case.after(smaller)
    return Suspect(
        name="large_batches",
        gains=gains,
        says=(
            f"Batches too large for the level: a batch of {case.size:.1f} of {case.what} takes {case.took_ms:.3g} ms, "
            f"of {case.level_ms:.3g} ms that a call may take."
        ),
        evidence=(
            f"a batch of {fits} takes {took:.3g} ms, and such batches would need {load:.0%} of these {case.devices}",
            f"execute is {case.part_of(EXECUTE):.0%} of a call",
        ),
        cures=_fewer_calls_each(case, fits, load),
        promises=(Promise(metric="p95_ms", value=then, tolerance=0.5, at_most=True),),
        change=smaller,
    )
