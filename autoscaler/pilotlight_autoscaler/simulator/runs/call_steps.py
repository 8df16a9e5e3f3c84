"""A function moved from call to call, as its home would grant them."""

from __future__ import annotations

import math
from heapq import heappop, heappush

from pilotlight_autoscaler.simulator.runs.function_run import MOST_QUEUED, FunctionRun, QueuedBatch
from pilotlight_autoscaler.simulator.runs.simulated_container import SimulatedContainer


def move_by_calls(run: FunctionRun, stops_at: float) -> None:
    """Move a function to `stops_at`, or to the instant at which its policy is to be asked, if that is sooner."""
    calls, ends, starting, minute_end = run.calls, run.ends, run.starting, run.minute_end
    number, count = run.next_call, len(run.calls)
    comes_at = calls[number][0] if number < count else math.inf
    while True:
        bound = run.look_at if run.look_at < stops_at else stops_at
        ends_at = ends[0][0] if ends else math.inf
        ready_at = starting[0].ready_at if starting else math.inf
        if ends_at <= bound and ends_at <= comes_at and ends_at <= ready_at:
            run.at = ends_at
            _end(run)
        elif ready_at <= bound and ready_at <= comes_at:
            run.at = ready_at
            _begin(run)
        elif comes_at <= bound and comes_at < minute_end:
            run.at = comes_at
            duration_s = calls[number][1]
            number += 1
            run.next_call = number
            comes_at = calls[number][0] if number < count else math.inf
            _come(run, duration_s)
        else:
            if bound > run.at:
                run.at = bound
            return


def _come(run: FunctionRun, duration_s: float) -> None:
    sums = run.sums
    sums.calls += 1
    run.arrivals += 1
    is_cold = not run.ready
    sums.cold += is_cold
    container = None if run.queued else _free_one(run)
    if container is not None:
        _grant(run, container, duration_s)
        # As `observe_wait(0.0)`, in place: most calls do not wait.
        sums.waits.observe(0.0)
        met = sums.met
        met[0] += 1
        met[1] += 1
        met[2] += 1
        if run.running > run.covered:
            run.on_more(run.at)
        return
    if run.queued >= MOST_QUEUED:
        sums.refused += 1
        run.refused += 1
        run.on_more(run.at)
        return
    run.waiting.append(QueuedBatch(run.at, 1, duration_s, is_cold=is_cold))
    run.queued += 1
    run.on_wait(run.at)


def _end(run: FunctionRun) -> None:
    _, _, container, duration_s = heappop(run.ends)
    run.running -= 1
    container.free(run.at)
    run.on_ended(duration_s)
    if run.slots == 1:
        heappush(run.open, (container.number, container))
    if run.queued:
        _grant_waiting(run)
    else:
        run.on_fewer(run.at)


def _begin(run: FunctionRun) -> None:
    container = run.take_ready()
    if run.slots == 1:
        heappush(run.open, (container.number, container))
    if run.queued:
        _grant_waiting(run)


def _grant_waiting(run: FunctionRun) -> None:
    run.drop_late(run.at)
    while run.waiting and (container := _free_one(run)) is not None:
        call = run.waiting.popleft()
        run.queued -= 1
        _grant(run, container, call.duration_s)
        run.sums.observe_wait(run.at - call.at)
    if not run.queued:
        run.covered_queue = 0
    if run.running > run.covered:
        run.on_more(run.at)


def _free_one(run: FunctionRun) -> SimulatedContainer | None:
    if run.slots == 1:
        return run.open[0][1] if run.open else None
    return run.choose()


def _grant(run: FunctionRun, container: SimulatedContainer, duration_s: float) -> None:
    if run.slots == 1:
        heappop(run.open)
    container.take(run.at)
    run.running += 1
    run.granted += 1
    if run.at < run.first_grant_at:
        run.first_grant_at = run.at
    heappush(run.ends, (run.at + duration_s, run.granted, container, duration_s))
