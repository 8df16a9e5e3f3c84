"""What callers, and limits on them, bound: quotas, budgets, too few calls in flight, slow readers, neighbours."""

from __future__ import annotations

import math

from pilotlight_gateway.diagnosis.call_samples import mean_total, tail_ms, tail_stage
from pilotlight_gateway.diagnosis.capacity_causes import MOST_SLOTS, SLOWED
from pilotlight_gateway.diagnosis.diagnosis_case import BUDGET_CODES, COMFORTABLE, HIGH, QUOTA_CODES, DiagnosisCase
from pilotlight_gateway.diagnosis.diagnosis_window import QUEUE, CallSample, DiagnosisWindow, FlowFacts, StageTimes
from pilotlight_gateway.diagnosis.suspects import CallTrouble, Cure, CureCost, Promise, Suspect

WAITS_MS = 20.0
"""In the queue: who waits no longer waits for the platform's own steps."""
ANOTHER = "another tenant"
"""How a neighbour is called to tenants."""


def quota_bound(case: DiagnosisCase) -> Suspect | None:
    """A limit of the callers' tenant refuses calls."""
    window = case.window
    limited = window.codes(*QUOTA_CODES)
    if CallTrouble.LIMITED not in case.severity or not limited:
        return None
    share = limited / max(1, window.codes(*QUOTA_CODES, *BUDGET_CODES))
    quota = min(window.quotas, key=lambda each: each.allowed, default=None)
    which = f"{quota.tenant} may have {quota.limit}={quota.allowed:g}" if quota else "the limit is that of its tenant"
    asked = (window.arrivals - window.codes("bad_input")) / window.seconds
    raised = math.ceil(1.5 * asked)
    if quota is not None and quota.limit == "concurrency":
        raised = math.ceil(1.5 * asked * case.mean_ms / 1000)
    return Suspect(
        name="quota",
        gains={
            CallTrouble.LIMITED: 0.95 * share if case.rho < 1.2 else 0.5 * share,
            CallTrouble.RATE: 0.9 * share if case.busy < COMFORTABLE else 0.3 * share,
        },
        says=(
            f"Quota-bound: {limited / window.arrivals:.0%} of the calls to {case.what} are refused as rate_limited "
            f"while its {case.devices} are busy {case.busy:.0%}."
        ),
        evidence=(which, "no other limit refuses calls" if share == 1 else "a budget refuses calls, too"),
        cures=(
            Cure(
                cost=CureCost.SETTING,
                what=f"raise {quota.limit if quota else 'the limit'} of {quota.tenant if quota else 'the tenant'}",
                command=quota.command(raised) if quota else "",
                changes={quota.limit if quota else "requests_per_s": float(raised)},
            ),
            Cure(cost=CureCost.CALLER, what="send less, or wait for Retry-After"),
        ),
        promises=(
            Promise(metric="limited_part", value=0.0, tolerance=0.0, at_most=True),
            Promise(metric="rate", value=asked, tolerance=0.05),
        ),
    )


def budget_bound(case: DiagnosisCase) -> Suspect | None:
    """A budget is used up."""
    window = case.window
    short = window.codes(*BUDGET_CODES)
    if CallTrouble.LIMITED not in case.severity or not short:
        return None
    share = short / max(1, window.codes(*QUOTA_CODES, *BUDGET_CODES))
    return Suspect(
        name="budget",
        gains={CallTrouble.LIMITED: 0.95 * share, CallTrouble.RATE: 0.9 * share},
        says=f"Budget-bound: {short / window.arrivals:.0%} of the calls to {case.what} are refused as "
        "budget_exhausted.",
        evidence=(f"{case.devices} are busy {case.busy:.0%}: there would be room for them",),
        cures=(
            Cure(
                cost=CureCost.SETTING,
                what="raise the budget, or wait for its next period",
                command="pilotlight billing budget list",
                changes={"budget": 1.0},
            ),
            Cure(cost=CureCost.CALLER, what="send deadline_ms: a call reserves what it could cost at most"),
        ),
        promises=(Promise(metric="limited_part", value=0.0, tolerance=0.0, at_most=True),),
    )


def client_bound(case: DiagnosisCase) -> Suspect | None:
    """The wanted rate is not asked for: callers wait for answers before they send more."""
    window, wanted = case.window, case.window.wanted_per_s
    if CallTrouble.RATE not in case.severity or wanted is None:
        return None
    others = case.severity.keys() & {CallTrouble.LIMITED, CallTrouble.FULL, CallTrouble.FAILING}
    waits = tail_stage(case.samples, QUEUE) > max(WAITS_MS, 0.3 * case.tail_ms)
    if case.loop >= COMFORTABLE or waits or others:
        return None  # containers may be busy all the time: what nobody waits for is not the bound
    flight = window.mean_inside if window.mean_inside is not None else window.rate * case.mean_ms / 1000
    need = math.ceil(wanted * case.mean_ms / 1000 * 1.1)
    one = 1000 * case.full_size / max(1e-6, case.line.ms(case.full_size))
    can = one * max(case.ready, window.max_containers)
    return Suspect(
        name="client",
        gains={CallTrouble.RATE: 1.0},
        says=(
            f"Client-bound: callers of {case.what} keep {flight:.3g} calls in flight, and {flight:.3g} / "
            f"{case.mean_ms:.3g} ms is {window.rate:.3g}/s."
        ),
        evidence=(
            (
                f"nothing waits: {case.devices} busy {case.busy:.0%}, gateway {case.loop:.0%}; a container can do "
                f"{one:.3g}/s, and {window.max_containers} are allowed"
            ),
        ),
        cures=(
            Cure(
                cost=CureCost.CALLER,
                what=f"keep {need} calls in flight: .map(), or more connections",
                changes={"in_flight": float(need)},
            ),
        ),
        promises=(Promise(metric="rate", value=min(wanted, 0.8 * can), tolerance=0.2),),
    )


def jobs_bound(case: DiagnosisCase) -> Suspect | None:
    """Jobs fill the containers that calls wait for."""
    window = case.window
    together = case.busy + case.jobs_busy
    if together < HIGH or case.jobs_busy < MOST_SLOTS * together or case.rho >= HIGH:
        return None
    if case.means[QUEUE] < WAITS_MS and CallTrouble.FULL not in case.severity:
        return None
    change = case.with_containers(case.ready)
    then, gains = case.after(change)
    function, more = case.what.partition("@")[0], math.ceil(case.ready * together / COMFORTABLE)
    wider = f"--min {more}" if window.max_containers >= more else f"--min {more} --max {more}"
    return Suspect(
        name="jobs",
        gains=gains | {CallTrouble.FULL: 0.8, CallTrouble.RATE: 0.5},
        says=(
            f"Jobs are in the way: runs of jobs keep the {case.devices} of {case.what} busy {case.jobs_busy:.0%} of "
            f"the time, its calls {case.busy:.0%}, and these wait {case.means[QUEUE]:.3g} ms."
        ),
        evidence=(f"without jobs its calls would ask for {case.rho:.0%} of what its containers can do",),
        cures=(
            Cure(cost=CureCost.CALLER, what="give its jobs the priority batch: calls go before them"),
            Cure(
                cost=CureCost.GPU_TIME,
                what=f"{more} containers for both",
                command=f"pilotlight scale {function} {wider}",
                changes={"min_containers": float(more), "max_containers": float(max(more, window.max_containers))},
            ),
        ),
        promises=(Promise(metric="p95_ms", value=then, tolerance=0.6, at_most=True),),
        change=change,
    )


def slow_reader(case: DiagnosisCase) -> Suspect | None:
    """Streams stand still, since their callers do not read on."""
    window = case.window
    if window.unread_ms <= 0.3 * case.mean_ms or window.unread_ms < 50:
        return None
    kept = 1 - min(0.95, window.unread_ms / case.mean_ms)

    def read(stages: StageTimes) -> StageTimes:
        return tuple(ms * kept for ms in stages)

    then, gains = case.after(read)
    return Suspect(
        name="client",
        gains=gains | {CallTrouble.FULL: 0.5, CallTrouble.RATE: 0.5},
        says=(
            f"Client-bound: streams of {case.what} stand still for {window.unread_ms:.3g} ms of {case.mean_ms:.3g} ms, "
            f"since their callers do not read what is there."
        ),
        evidence=("slots and devices are held meanwhile",),
        cures=(
            Cure(
                cost=CureCost.CALLER,
                what="read streams as they come, in a task of their own, or over a faster connection",
                changes={"unread_factor": 0.0},
            ),
        ),
        promises=(Promise(metric="p95_ms", value=then, tolerance=0.5, at_most=True),),
        change=read,
    )


def noisy_neighbour(case: DiagnosisCase) -> Suspect | None:
    """One tenant's calls take many times as long as alone, while another holds most of the slots."""
    window = case.window
    worst = max(window.flows, key=lambda each: each.slowdown, default=None)
    if worst is None or worst.slowdown < SLOWED:
        return None
    others = [each for each in window.flows if each.tenant != worst.tenant]
    bully = max(others, key=lambda each: each.held_part, default=None)
    if bully is None or bully.held_part < MOST_SLOTS:
        return None
    kept_busy = worst.rate * worst.run_ms / 1000 / case.size  # containers, by its own calls
    if not worst.run_ms:
        kept_busy = worst.held_part * (window.held_part or 1.0) * case.ready
    need = max(1, math.ceil(kept_busy / COMFORTABLE))
    ready = round(case.ready)
    if need > 2 * ready:
        return None  # its own calls would fill the containers: no neighbour's fault
    mine = tuple(each for each in case.samples if each.tenant in ("", worst.tenant))
    alone = (worst.mean_ms or mean_total(mine)) / worst.slowdown
    gains = _gain_of(case, mine, worst)

    def spared(stages: StageTimes) -> StageTimes:
        return tuple(ms / worst.slowdown for ms in stages)

    held = f"holds {bully.held_part:.0%} of the time in its slots"
    evidence = (
        f"its own calls hold {worst.held_part:.0%} of that time",
        f"alone they would take {alone:.3g} ms on average",
    )
    slowed = f"to {case.what} take {worst.slowdown:.1f} times as long as alone, while"
    says = f"Noisy neighbour: calls of {{}} {slowed} {{}} {held}."
    return Suspect(
        name="neighbour",
        gains=gains,
        says=says.format("one tenant", ANOTHER),
        for_operator=says.format(worst.tenant, bully.tenant),
        evidence=evidence,
        cures=_room_beside(bully.tenant, need, ready, window),
        promises=(Promise(metric="slowed_mean_ms", value=alone, tolerance=0.35, at_most=True),),
        change=spared,
    )


def _room_beside(other: str, need: int, ready: int, window: DiagnosisWindow) -> tuple[Cure, ...]:
    """How a tenant gets the containers that its own calls need."""
    apart = Cure(cost=CureCost.VERSION, what="a function of its own for the other")
    cap = (ready - need) * window.slots
    only = f" --function {window.owner}:{window.function.partition('@')[0]}" if window.owner else ""
    if cap >= 1:
        capped = Cure(
            cost=CureCost.SETTING,
            what=f"a cap of {cap} calls in flight for the other",
            command=f"pilotlight quota set {other} concurrency={cap}{only}",
            changes={"concurrency": float(cap)},
        )
        return capped, apart
    cap, more = ready * window.slots, ready + need
    both = Cure(
        cost=CureCost.GPU_TIME,
        what=f"{more} containers, and a cap of {cap} calls in flight for the other, which would fill those, too",
        command=f"pilotlight quota set {other} concurrency={cap}{only}",
        changes={"concurrency": float(cap), "min_containers": float(more)},
    )
    return both, apart


def _gain_of(case: DiagnosisCase, mine: tuple[CallSample, ...], worst: FlowFacts) -> dict[CallTrouble, float]:
    """What is gained of the calls of the tenant that is hurt: others are no slower for it."""
    had = tail_ms(mine)
    if CallTrouble.SLOW not in case.severity or had <= case.level_ms:
        return {}
    return {CallTrouble.SLOW: min(1.0, (had - had / worst.slowdown) / (had - case.level_ms))}
