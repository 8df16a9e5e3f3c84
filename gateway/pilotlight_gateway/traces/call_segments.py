"""Where the time of a kept call went, end to end: what spans and waterfalls are drawn by.

A call's stages follow each other, so laid end to end they are the call. Only durations are used: those of the gateway
by its own clock, those of the node inside them. What is left at the end is the answer's.
"""

from __future__ import annotations

from typing import NamedTuple

from pilotlight_core.model.tracing.kept_call import KeptAttempt, KeptCall

OF_ATTEMPT = ("queue", "start", "transport", "batch_wait", "execute")
"""The stages of an attempt, in their order."""
HOOKS = ("preprocess", "postprocess")
LEAST_MS = 1e-6


class SegmentStep(NamedTuple):
    """A step of a container's start that a call waited for."""

    name: str
    begin_ms: float
    ms: float


class CallSegment(NamedTuple):
    """A stage of a call, or of one of its attempts. Milliseconds since its arrival."""

    name: str
    begin_ms: float
    ms: float
    attempt: int = 0
    """Which, from 1; 0: it belongs to none."""
    tried: KeptAttempt | None = None
    steps: tuple[SegmentStep, ...] = ()
    """Of the start of a container: the part of each that the call waited for."""


def segments_of(call: KeptCall) -> list[CallSegment]:
    """The call's stages that took any time, in their order; they sum to its total."""
    found: list[CallSegment] = []
    at = 0.0

    def lay(name: str, ms: float, attempt: int = 0, tried: KeptAttempt | None = None) -> None:
        nonlocal at
        if ms > LEAST_MS:
            found.append(CallSegment(name, at, ms, attempt, tried))
            at += ms

    lay("gateway", call.stages.get("gateway", 0.0) if call.stages else call.total_ms)
    lay(HOOKS[0], call.stages.get(HOOKS[0], 0.0))
    for number, tried in enumerate(attempts_of(call), 1):
        for stage in OF_ATTEMPT:
            ms: float = getattr(tried, stage)
            lay(stage, ms, number, tried)
    lay(HOOKS[1], call.stages.get(HOOKS[1], 0.0))
    lay("respond", call.total_ms - at)
    return _with_steps(found, call.cold_start or {})


def attempts_of(call: KeptCall) -> tuple[KeptAttempt, ...]:
    """The attempts of a call: what none of those that ended has of its time is one more, which did not."""
    ended = call.attempts
    if any(hook in call.stages for hook in HOOKS):  # what its hooks tried is in theirs
        ended = ended[-1:] if not call.code else ()
        return (*ended,) if ended else (_left(call, ()),)
    left = _left(call, ended)
    waited = sum((left.queue, left.start, left.transport, left.batch_wait, left.execute))
    return (*ended, left) if waited > LEAST_MS else ended


def _left(call: KeptCall, ended: tuple[KeptAttempt, ...]) -> KeptAttempt:
    def left(stage: str) -> float:
        spent: list[float] = [getattr(one, stage) for one in ended]
        return max(0.0, call.stages.get(stage, 0.0) - sum(spent))

    queue, start, transport, batch_wait, execute = map(left, OF_ATTEMPT)
    return KeptAttempt(
        started=execute > 0.0, queue=queue, start=start, transport=transport, batch_wait=batch_wait, execute=execute
    )


def _with_steps(found: list[CallSegment], cold_start: dict[str, float]) -> list[CallSegment]:
    """The last wait for a start, with its steps: the call may have come while they were under way."""
    for index in range(len(found) - 1, -1, -1):
        segment = found[index]
        if segment.name == "start" and cold_start:
            steps: list[SegmentStep] = []
            end = segment.begin_ms + segment.ms
            for name, ms in reversed(cold_start.items()):
                begin = max(segment.begin_ms, end - ms)
                if end - begin > LEAST_MS:
                    steps.append(SegmentStep(name, begin, end - begin))
                end = begin
            found[index] = segment._replace(steps=tuple(reversed(steps)))
            break
    return found
