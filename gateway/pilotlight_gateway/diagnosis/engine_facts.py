"""The facts of a token engine, from what its containers told between two reports. Pure.

An engine tells how many steps it has made, and how many tokens of prompts and of answers. In the time in which it works
all the time, `time / steps = step + sequence * (answers' tokens / steps) + prompt_token * (prompts' tokens / steps)`,
whose three numbers are those of least squares over all intervals, none of them below 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_gateway.diagnosis.diagnosis_window import EngineFacts
from pilotlight_gateway.fleet.container_history import EngineSample

LEAST_SAMPLES = 5
FULL = 0.9
ROUNDS = 60
"""Of the descent to the least squares: three unknowns need few."""


def engine_facts(
    samples: Sequence[EngineSample],
    *,
    most: int,
    first_level_ms: float | None,
    gap_level_ms: float | None,
    answer_tokens_per_s: float = 0.0,
) -> EngineFacts | None:
    """The facts of a window; None: too little was told. Levels that are not named are those that are kept anyway."""
    if len(samples) < LEAST_SAMPLES:
        return None
    seconds = sum(sample.seconds for sample in samples)
    containers = len({sample.container for sample in samples})
    last = [sample.after for sample in samples]
    step_ms, sequence_ms, prompt_ms = step_times(samples)
    running = _mean([each.running for each in last])
    gap_ms = _high([each.inter_token_ms for each in last])
    first_ms = _high([each.first_token_ms for each in last])
    decoded = sum(sample.after.decode_tokens - sample.before.decode_tokens for sample in samples)
    prefilled = sum(sample.after.prefill_tokens - sample.before.prefill_tokens for sample in samples)
    gap_level = gap_level_ms if gap_level_ms is not None else max(gap_ms, 1.0)
    first_level = first_level_ms if first_level_ms is not None else max(first_ms, 1.0)
    alone = step_ms + sequence_ms * running
    per_s = decoded / max(1e-9, seconds) * containers
    return EngineFacts(
        tokens_per_s=per_s,
        asked_tokens_per_s=max(per_s, answer_tokens_per_s),
        first_token_ms=max(first_ms, 1e-3),
        gap_ms=max(gap_ms, 1e-3),
        first_token_level_ms=first_level,
        gap_level_ms=gap_level,
        running=running,
        waiting=_mean([each.waiting for each in last]),
        most=max(1, most),
        kv_full_part=_mean([float(each.kv_used_ratio >= FULL or each.lacks_room) for each in last]),
        preempted=sum(max(0, sample.after.preempted - sample.before.preempted) for sample in samples),
        step_ms=step_ms,
        sequence_ms=sequence_ms,
        prompt_token_ms=prompt_ms,
        prompt_tokens_per_s=prefilled / max(1e-9, seconds),
        chunk=max((each.token_budget for each in last), default=0),
        # A gap that a step without prompts would not have made had a prompt in it.
        late_with_prompt=1.0 if gap_ms > gap_level and alone < 0.8 * gap_level and prefilled else 0.0,
    )


def step_times(samples: Sequence[EngineSample]) -> tuple[float, float, float]:
    """Milliseconds of a step, of each sequence in it, and of each token of a prompt."""
    rows = []
    for sample in samples:
        steps = sample.after.steps - sample.before.steps
        if steps > 0 and _works(sample.before) and _works(sample.after):
            answers = (sample.after.decode_tokens - sample.before.decode_tokens) / steps
            prompts = (sample.after.prefill_tokens - sample.before.prefill_tokens) / steps
            rows.append((answers, prompts, sample.seconds * 1000 / steps))
    if not rows:
        told = [sample.after.step_us / 1000 for sample in samples if sample.after.step_us]
        return (_mean(told), 0.0, 0.0)
    return _least_squares(rows)


def _works(report: EngineReport) -> bool:
    return report.running > 0


def _least_squares(rows: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    """By coordinate descent, each number at least 0."""
    found = [min(ms for _, _, ms in rows), 0.0, 0.0]
    columns = [[1.0, answers, prompts] for answers, prompts, _ in rows]
    for _ in range(ROUNDS):
        for place in range(3):
            square = sum(row[place] ** 2 for row in columns)
            if square <= 0:
                continue
            rest = 0.0
            for row, (_, _, ms) in zip(columns, rows, strict=True):
                others = sum(row[other] * found[other] for other in range(3) if other != place)
                rest += row[place] * (ms - others)
            found[place] = max(0.0, rest / square)
    return (found[0], found[1], found[2])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _high(values: Sequence[float]) -> float:
    """What engines told of their 95th percentiles, of those that told one."""
    told = sorted(each for each in values if each > 0)
    return told[len(told) // 2] if told else 0.0
