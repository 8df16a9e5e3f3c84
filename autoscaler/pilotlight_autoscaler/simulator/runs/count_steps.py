"""A function moved by counts: how many calls come, end and wait in each step, where single calls would be too many.

In a step of `dt` a running call ends with the chance `1 - exp(-dt / mean)`; of those that come, the part that is still
there at its end is `mean / dt * (1 - exp(-dt / mean))`. Counts are drawn, not averaged, so what a policy sees moves as
real counts do. While calls wait, slots end calls as fast as they can, and the first ones that came go first.
"""

from __future__ import annotations

import math

from pilotlight_autoscaler.simulator.runs.function_run import MOST_QUEUED, FunctionRun, QueuedBatch
from pilotlight_autoscaler.simulator.traffic.traffic_patterns import draw_binomial, draw_poisson
from pilotlight_core.model.api.curve_api import TARGET_UTILISATION

FINE_S = 0.25
"""A step while calls wait, or containers start."""
COARSE_S = 1.0
SHORTEST_STEP_S = 1e-6


def move_by_counts(run: FunctionRun, stops_at: float) -> None:
    """Move a function to `stops_at`, or to the instant at which its policy is to be asked, if that is sooner."""
    while run.at < (bound := min(stops_at, run.look_at)):
        step_s = FINE_S if run.queued or run.starting else COARSE_S
        end = min(bound, run.at + step_s)
        if run.starting and run.starting[0].ready_at < end:
            end = max(run.starting[0].ready_at, run.at + SHORTEST_STEP_S)
        _step(run, end)


def _step(run: FunctionRun, end: float) -> None:
    dt, came_at = end - run.at, (run.at + end) / 2
    comes = draw_binomial(run.dice, run.left, dt / (run.minute_end - run.at)) if end < run.minute_end else run.left
    run.left -= comes
    run.arrivals += comes
    run.on_arrivals(comes, end)
    run.sums.calls += comes
    if not run.ready:
        run.sums.cold += comes
    run.at = end
    slots = run.slots * len(run.ready)
    stays = math.exp(-dt / run.mean_s)
    if not run.queued:
        present = draw_binomial(run.dice, run.running, stays)
        present += draw_binomial(run.dice, comes, (1.0 - stays) * run.mean_s / dt)
        if present <= slots:
            _end(run, run.running + comes - present)
            run.running = present
            if comes:
                run.sums.observe_wait(0.0, comes)
                run.first_grant_at = min(run.first_grant_at, came_at)
            _occupy(run, comes)
            _ready(run)
            return
    _crowd(run, comes, came_at, draw_poisson(run.dice, slots * dt / run.mean_s), slots)
    _occupy(run, comes)
    _ready(run)


def _crowd(run: FunctionRun, comes: int, came_at: float, most_ended: int, slots: int) -> None:
    """A step in which not all calls have a slot."""
    waited_before = run.queued
    if comes:
        run.waiting.append(QueuedBatch(came_at, comes, run.mean_s, is_cold=not run.ready))
        run.queued += comes
    ended = min(run.running + run.queued, most_ended)
    running = min(slots, run.running + run.queued - ended)
    granted = ended + running - run.running
    _grant(run, granted, at_once=not waited_before)
    _end(run, ended)
    run.running = running
    _refuse(run)
    run.drop_late(run.at)
    if not run.queued:
        run.covered_queue = 0
    else:
        run.on_wait(run.at)


def _grant(run: FunctionRun, calls: int, *, at_once: bool) -> None:
    """The calls that came first have their turn; those of this step at once, if nobody waited at its beginning."""
    if calls:
        run.first_grant_at = min(run.first_grant_at, run.at)
    while calls > 0 and run.waiting:
        first = run.waiting[0]
        taken = min(calls, first.count)
        run.sums.observe_wait(0.0 if at_once and len(run.waiting) == 1 else run.at - first.at, taken)
        first.count -= taken
        run.queued -= taken
        calls -= taken
        if not first.count:
            run.waiting.popleft()


def _refuse(run: FunctionRun) -> None:
    """Those that came last and find the queue full are turned away."""
    excess = run.queued - MOST_QUEUED
    while excess > 0 and run.waiting:
        last = run.waiting[-1]
        gone = min(excess, last.count)
        last.count -= gone
        if not last.count:
            run.waiting.pop()
        excess -= gone
        run.queued -= gone
        run.refused += gone
        run.sums.refused += gone


def _end(run: FunctionRun, calls: int) -> None:
    if calls > 0:
        run.on_ended(run.mean_s, calls)


def _occupy(run: FunctionRun, comes: int) -> None:
    """Let as many containers be busy as a home would use for what runs."""
    there = len(run.ready)
    full = run.running >= TARGET_UTILISATION * run.slots * there
    busy = min(there, run.running if full else math.ceil(run.running / run.slots))
    stack, idle = run.busy_stack, run.idle_stack
    while len(stack) < busy and idle:
        container = idle.pop()
        container.take(run.at)
        stack.append(container)
    fewer = len(stack) > busy
    while len(stack) > busy:
        container = stack.pop()
        container.stop_work(run.at)
        idle.append(container)
    if comes and stack:
        stack[0].calls += comes
    elif comes and idle and not run.queued:
        # All that came have ended within the step: the container that was used last had them.
        idle[-1].calls += comes
        idle[-1].idle_since = run.at
    if fewer:
        run.on_fewer(run.at)
    if run.running > run.covered or (comes and not run.covered):
        run.on_more(run.at)


def _ready(run: FunctionRun) -> None:
    while run.starting and run.starting[0].ready_at <= run.at:
        run.idle_stack.append(run.take_ready())
