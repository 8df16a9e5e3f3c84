"""Too few containers: since a limit keeps them away, since the fleet has no room, or since they come too late."""

from __future__ import annotations

import math

from pilotlight_gateway.diagnosis.call_samples import tail_stage, with_stages
from pilotlight_gateway.diagnosis.diagnosis_case import COMFORTABLE, HIGH, DiagnosisCase
from pilotlight_gateway.diagnosis.diagnosis_window import BATCH_WAIT, EXECUTE, QUEUE, START, StageTimes
from pilotlight_gateway.diagnosis.suspects import CallTrouble, Cure, CureCost, Promise, Suspect

SLOWED = 2.0
"""A flow that takes so many times as long as alone is hurt by others."""
MOST_SLOTS = 0.5
"""Of the time in slots: who holds so much of it is the neighbour."""
MOST_PLACES = 10
"""That are looked for: so many may be more."""
LEAST_WAITED = 0.03
"""Of calls that wait for a start, the part from which their percentiles feel it."""
SHORT_PART = 0.3
"""Of the time: a shortage that lasts longer is the bound."""
BURST_FACTOR = 8
"""More containers than so many times those that there are is no advice."""


def gpu_bound(case: DiagnosisCase) -> Suspect | None:
    """More is asked for than the containers can do even in full batches, and a limit keeps others away."""
    window = case.window
    if case.rho < HIGH or window.shortage_part >= SHORT_PART or case.cpu_part >= 0.5:
        return None
    each_ms = case.took_ms / case.size if case.limit_of_batches else case.line.ms(case.full_size) / case.full_size
    need = case.offered * each_ms / 1000
    more = max(math.ceil(need / COMFORTABLE), math.ceil(case.ready) + 1)
    change = case.with_containers(more)
    then, gains = case.after(change)
    part = 1.0 if case.rho >= 1 else 0.8
    if (crowd := _held_by_one_other(case)) and CallTrouble.SLOW in gains:
        gains[CallTrouble.SLOW] *= 1 - crowd  # who fills these containers would fill more of them
    gains |= {
        CallTrouble.FULL: part,
        CallTrouble.RATE: 0.9 if window.loop_part is None or case.loop < COMFORTABLE else 0.3,
    }
    kind = "GPU-bound" if window.on_gpu else "Bound by its containers"
    says = (
        f"{kind}: calls to {case.what} need {case.rho:.0%} of its {case.devices} even in full batches "
        f"({case.size:.1f} of {case.full_size} now)"
    )
    if window.loop_part is not None:
        says += f", while the gateway uses {case.loop:.0%} of its thread"
    evidence = (
        (
            f"{case.offered:.3g}/s x {each_ms:.3g} ms = {need:.3g} {case.devices} of {case.ready:.3g}, "
            f"busy {case.busy:.0%}"
        ),
        _processors(case),
        f"{window.queued:.3g} calls wait on average",
    )
    return Suspect(
        name="gpu",
        gains=gains,
        says=says + ".",
        evidence=tuple(line for line in evidence if line),
        cures=_more_containers(case, more),
        promises=(
            Promise(metric="rate", value=case.offered, tolerance=0.05),
            Promise(metric="p95_ms", value=then, tolerance=0.6, at_most=True),
        ),
        change=change,
    )


def _held_by_one_other(case: DiagnosisCase) -> float:
    """Of the time in slots, the part of one tenant beside which another is slowed down."""
    flows = case.window.flows
    worst = max(flows, key=lambda each: each.slowdown, default=None)
    if worst is None or worst.slowdown < SLOWED:
        return 0.0
    most = max((each.held_part for each in flows if each.tenant != worst.tenant), default=0.0)
    return most if most >= MOST_SLOTS else 0.0


def _processors(case: DiagnosisCase) -> str:
    window = case.window
    if window.guest_cpu_s is None or not window.on_gpu:
        return ""
    used = window.guest_cpu_s / max(1e-9, window.containers * window.seconds)
    return f"their code uses {used:.2f} cores each of {window.cores:g}: the processors are not what is short"


def _more_containers(case: DiagnosisCase, more: int) -> tuple[Cure, ...]:
    """How the function gets so many, by what keeps it from them now."""
    window, function = case.window, case.what.partition("@")[0]
    cures = []
    if window.owner_limit is not None:
        limit = window.owner_limit
        cures.append(
            Cure(
                cost=CureCost.SETTING,
                what=f"raise {limit.limit}={limit.allowed:g} of {limit.tenant}: it allows no more containers",
                command=limit.command(max(more, math.ceil(limit.allowed) + 1)),
                changes={limit.limit: float(more), "max_containers": float(more)},
            )
        )
    elif window.free_places is not None and window.free_places < min(MOST_PLACES, more - case.ready):
        cures.append(
            Cure(
                cost=CureCost.HARDWARE,
                what=f"room for {more} containers, and max_containers={more}: the fleet has it for "
                f"{math.floor(case.ready) + window.free_places}",
                command=f"pilotlight placement explain {function}",
                changes={"fits": float(more), "max_containers": float(more)},
            )
        )
    elif window.max_containers < more:
        cures.append(
            Cure(
                cost=CureCost.GPU_TIME,
                what=f"max_containers={more}",
                command=f"pilotlight scale {function} --max {more}",
                changes={"max_containers": float(more)},
            )
        )
    else:
        cures.append(
            Cure(
                cost=CureCost.GPU_TIME,
                what=f"min_containers={more}: more are allowed than are there",
                command=f"pilotlight scale {function} --min {more}",
                changes={"min_containers": float(more), "max_containers": float(max(more, window.max_containers))},
            )
        )
    line = case.line
    if window.is_batched and case.size >= 0.9 * case.full_size and line.fixed_ms > line.each_ms * case.full_size:
        larger = 2 * case.full_size
        saved = 1 - line.ms(larger) / larger / (line.ms(case.full_size) / case.full_size)
        cures.append(
            Cure(
                cost=CureCost.VERSION,
                what=f"batches of up to {larger}: a call would take {saved:.0%} less of a device, if it holds so many",
                changes={"max_batch_size": float(larger)},
                gain=saved,
            )
        )
    cures.append(Cure(cost=CureCost.VERSION, what="a smaller or quantised version, or a faster slice"))
    cures.append(Cure(cost=CureCost.HARDWARE, what="a node more, if nothing is free"))
    return tuple(cures)


def placement_bound(case: DiagnosisCase) -> Suspect | None:
    """More containers are wanted than the fleet has room for."""
    window = case.window
    waits = case.means[QUEUE] + case.means[START] + case.means[BATCH_WAIT]
    if window.shortage_part < SHORT_PART or not (
        waits > 0.3 * case.tail_ms or CallTrouble.FULL in case.severity or not window.completed
    ):
        return None
    wanted = max(window.wanted, math.ceil(case.ready) + 1)
    enough = min(0.99, case.rho * case.ready / wanted)
    change = case.with_containers(wanted)

    def placed(stages: StageTimes) -> StageTimes:
        return with_stages(change(stages), {START: 0.0})

    then, gains = case.after(placed)
    there = f"{window.containers:.3g}" if window.containers >= 0.5 else "none"
    return Suspect(
        name="placement",
        gains=gains | {CallTrouble.FULL: 1.0, CallTrouble.RATE: 0.9},
        says=(
            f"Placement-bound: {case.what} wants at least {wanted:.0f} containers and {there} fit, "
            f"for {window.shortage_part:.0%} of the time."
        ),
        evidence=(
            f"{case.devices} busy {case.busy:.0%}, {window.queued:.3g} calls wait",
            f"with {wanted:.0f} containers they would be asked for {enough:.0%} of their capacity",
            "raising max_containers would change nothing: more are wanted already",
        ),
        cures=(
            Cure(
                cost=CureCost.MOVES,
                what="make room: repartition or consolidate, so that free parts of devices become one slice",
                command=f"pilotlight placement explain {case.what.partition('@')[0]}",
                changes={"fits": float(wanted)},
            ),
            Cure(cost=CureCost.HARDWARE, what="a node more"),
        ),
        promises=(
            Promise(metric="p95_ms", value=then, tolerance=0.6, at_most=True),
            Promise(metric="rate", value=case.offered, tolerance=0.05),
        ),
        change=placed,
    )


def cold_bound(case: DiagnosisCase) -> Suspect | None:
    """Calls wait for the start of a container, the first one or one more."""
    window = case.window
    if not window.starts or window.failed_starts >= 0.5 * window.starts:
        return None
    coming = window.starting / max(0.1, window.containers + window.starting)
    waited = sum(each.weight for each in case.samples if each.stages[START] > 0)
    waited /= sum(each.weight for each in case.samples) or 1.0
    waits_for_first = case.means[START] > 0.02 * case.mean_ms and waited >= LEAST_WAITED
    comes_and_goes = window.idle_ends >= 3 and window.idle_ends >= 0.5 * window.starts  # that is `flapping`
    waits_for_more = (
        coming >= 0.05
        and window.starts >= 2
        and case.busy < 0.9
        and case.part_of(QUEUE) > 0.3
        and case.rho < HIGH
        and not comes_and_goes
    )
    if not (waits_for_first or waits_for_more) or window.shortage_part >= SHORT_PART:
        return None
    keep = max(1, math.ceil(case.rho * case.ready / COMFORTABLE), round(window.containers) if waits_for_more else 1)
    keep = min(keep, max(1, window.max_containers))
    after_starts = 1.0 if case.means[QUEUE] < case.means[START] else 0.2

    def kept_warm(stages: StageTimes) -> StageTimes:
        queue = stages[QUEUE] * (after_starts if stages[START] else 1.0)  # of others' queue starts are no cause
        if waits_for_more:
            queue = min(queue, case.took_ms)
        return with_stages(stages, {START: 0.0, QUEUE: queue})

    then, gains = case.after(kept_warm)
    says = (
        f"Cold-start-bound: {waited:.0%} of the calls to {case.what} waited for one of {window.starts} starts of "
        f"{window.start_ms / 1000:.1f} s."
    )
    if not waits_for_first:
        says = (
            f"Cold-start-bound: calls to {case.what} queue while containers start, {window.starts} in this window, "
            f"each {window.start_ms / 1000:.1f} s."
        )
    function = case.what.partition("@")[0]
    return Suspect(
        name="cold",
        gains=gains | {CallTrouble.FULL: 0.8},
        says=says,
        evidence=(
            f"of their time calls wait {case.part_of(START):.0%} for starts and {case.part_of(QUEUE):.0%} in the queue",
            f"{window.idle_ends} containers ended since they had nothing to do for {window.scaledown_s:g} s",
            f"once ready they are busy {case.busy:.0%}",
        ),
        cures=(
            Cure(
                cost=CureCost.GPU_TIME,
                what=f"min_containers={keep}, or a longer scaledown_window",
                command=f"pilotlight scale {function} --min {keep}",
                changes={"min_containers": float(keep)},
            ),
            Cure(cost=CureCost.VERSION, what="load less in @enter, or push weights so that nodes keep them"),
        ),
        promises=(
            Promise(metric="p95_ms", value=then, tolerance=0.6, at_most=True),
            Promise(metric="start_part", value=0.0, tolerance=0.0, at_most=True),
        ),
        change=kept_warm,
    )


def flapping(case: DiagnosisCase) -> Suspect | None:
    """Containers end for want of work and are missed soon after, while others stay."""
    window = case.window
    if window.idle_ends < 3 or window.starts < 3 or window.containers < 1 or window.shortage_part >= SHORT_PART:
        return None
    if case.means[START] > 0.02 * case.mean_ms or case.part_of(QUEUE, BATCH_WAIT) < 0.3 or case.rho >= HIGH:
        return None
    span = window.seconds / max(1, min(window.starts, window.idle_ends))
    longer = math.ceil(max(2 * span, 2 * window.scaledown_s))
    most = max(window.wanted, math.ceil(window.containers) + 1)
    kept = case.ready / most

    def change(stages: StageTimes) -> StageTimes:
        return with_stages(stages, {QUEUE: stages[QUEUE] * kept, BATCH_WAIT: stages[BATCH_WAIT] * kept})

    then, gains = case.after(change)
    return Suspect(
        name="flapping",
        gains=gains | {CallTrouble.FULL: 0.7},
        says=(
            f"Flapping: {window.idle_ends} containers of {case.what} ended for want of work and {window.starts} were "
            f"started again, in {window.seconds / 60:.3g} minutes."
        ),
        evidence=(
            f"one comes or goes about every {span:.3g} s, and ends after {window.scaledown_s:g} s without calls",
            f"a start takes {window.start_ms / 1000:.1f} s; calls queue {case.part_of(QUEUE):.0%} of their time",
        ),
        cures=(
            Cure(
                cost=CureCost.GPU_TIME,
                what=f"scaledown_window={longer}: longer than the pauses",
                command=f"pilotlight scale {case.what.partition('@')[0]} --scaledown-window {longer}",
                changes={"scaledown_window": float(longer)},
            ),
            Cure(cost=CureCost.GPU_TIME, what="a buffer of one container", changes={"buffer_containers": 1.0}),
        ),
        promises=(
            Promise(metric="p95_ms", value=then, tolerance=0.6, at_most=True),
            Promise(metric="idle_ends", value=window.idle_ends / 4, tolerance=0.5, at_most=True),
        ),
        change=change,
    )


def burst_bound(case: DiagnosisCase) -> Suspect | None:
    """Calls queue although on average there is room: they come together, or take very different times."""
    window = case.window
    if case.rho >= HIGH or window.shortage_part >= SHORT_PART or window.queued < 0.05 or case.cpu_part >= 0.5:
        return None
    if case.part_of(QUEUE) < 0.4 or case.means[START] > 0.1 * case.means[QUEUE] or case.limit_of_batches:
        return None
    if window.loop_part is not None and case.loop >= COMFORTABLE:
        return None
    if window.idle_ends >= 3 and window.starts >= 3:
        return None  # containers that stay would be enough: see `flapping`
    if window.idle_credit_part > 0.3:
        return None  # slots were free while they waited: more of them help nobody
    queue = tail_stage(case.samples, QUEUE)
    left = max(0.1 * case.level_ms, case.level_ms - (case.tail_ms - queue))
    more = math.ceil(case.ready * min(BURST_FACTOR, max(2.0, 1.2 * queue / left)))
    scale = case.ready / more

    def spread(stages: StageTimes) -> StageTimes:
        return with_stages(stages, {QUEUE: stages[QUEUE] * scale})

    then, gains = case.after(spread)
    function = case.what.partition("@")[0]
    return Suspect(
        name="bursts",
        gains=gains | {CallTrouble.FULL: 0.7, CallTrouble.RATE: 0.3},
        says=(
            f"Queue-bound by bursts: calls to {case.what} wait {case.means[QUEUE]:.3g} ms on average for "
            f"{case.ready:.3g} {case.devices} that are asked for {case.rho:.0%} of what they can do."
        ),
        evidence=(
            f"the queue is {case.part_of(QUEUE):.0%} of all time of calls; 95 of 100 wait at most {queue:.3g} ms",
            f"containers are busy {case.busy:.0%} of the time: room is missing only at times",
        ),
        cures=(
            Cure(
                cost=CureCost.GPU_TIME,
                what=f"{more} containers at all times",
                command=f"pilotlight scale {function} --min {more} --max {max(more, window.max_containers)}",
                changes={"min_containers": float(more), "max_containers": float(max(more, window.max_containers))},
            ),
            Cure(cost=CureCost.CALLER, what="send calls more evenly, or as jobs, where nobody waits for them"),
        ),
        promises=(Promise(metric="p95_ms", value=then, tolerance=0.6, at_most=True),),
        change=spread,
    )


def slice_too_small(case: DiagnosisCase) -> Suspect | None:
    """One call alone takes longer than its level here, and not on another kind of slice."""
    window = case.window
    alone = case.line.ms(1)
    if case.means[EXECUTE] < 0.4 * case.mean_ms or alone < 0.8 * case.level_ms:
        return None
    best = min(window.other_slices, key=lambda each: each.ms, default=None)
    if best is not None and best.ms < 0.8 * alone:
        ratio = best.ms / alone

        def faster(stages: StageTimes) -> StageTimes:
            return with_stages(
                stages, {EXECUTE: stages[EXECUTE] * ratio, QUEUE: stages[QUEUE] * ratio, BATCH_WAIT: stages[BATCH_WAIT]}
            )

        then, gains = case.after(faster)
        return Suspect(
            name="slice",
            gains=gains | {CallTrouble.RATE: 0.5, CallTrouble.FULL: 0.5},
            says=(
                f"Slice too small: one call to {case.what} takes {alone:.3g} ms on {window.slice}, of "
                f"{case.level_ms:.3g} ms that it may take, and {best.ms:.3g} ms on {best.what}."
            ),
            evidence=(f"the curve of {best.what} says so; execute is {case.part_of(EXECUTE):.0%} of a call",),
            cures=(
                Cure(
                    cost=CureCost.VERSION,
                    what=f"ask for {best.what} in gpu=",
                    changes={"execute_factor": ratio},
                ),
            ),
            promises=(Promise(metric="p95_ms", value=then, tolerance=0.5, at_most=True),),
            change=faster,
        )
    half = 0.5

    def leaner(stages: StageTimes) -> StageTimes:
        return with_stages(stages, {EXECUTE: stages[EXECUTE] * half, QUEUE: stages[QUEUE] * half})

    then, gains = case.after(leaner)
    return Suspect(
        name="execute",
        gains=gains,
        says=(
            f"Bound by its own code: one call to {case.what} alone takes {alone:.3g} ms in its container, of "
            f"{case.level_ms:.3g} ms that it may take."
        ),
        evidence=(
            f"execute is {case.part_of(EXECUTE):.0%} of a call, waiting of any kind the rest",
            "no curve says that another slice is faster: `pilotlight profile` measures them",
        ),
        cures=(
            Cure(
                cost=CureCost.VERSION,
                what="a version that takes half as long",
                changes={"execute_factor": half},
            ),
            Cure(cost=CureCost.VERSION, what="a larger slice in gpu=, once a profile shows that it is faster"),
            Cure(cost=CureCost.SETTING, what="another p95 in slo=, if so long is fine"),
        ),
        promises=(Promise(metric="p95_ms", value=then, tolerance=0.5, at_most=True),),
        change=leaner,
    )
