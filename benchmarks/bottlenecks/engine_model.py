"""One engine that batches continuously, in virtual steps, and the facts that it would tell of a window."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pilotlight_gateway.diagnosis.diagnosis_window import DiagnosisWindow, EngineFacts


@dataclass(frozen=True, kw_only=True)
class EnginePlant:
    """An engine and what is asked of it; times in seconds."""

    rate: float = 2.0
    prompt: int = 400
    output: int = 200
    long_every: int = 0
    """Each n-th prompt has `long` tokens."""
    long: int = 0
    most: int = 64
    """Sequences at once."""
    kv: int = 60_000
    """Tokens whose keys and values there is room for."""
    chunk: int = 512
    """Tokens of prompts in a step."""
    step_s: float = 0.012
    decode_s: float = 0.00015
    """Of a sequence."""
    prefill_s: float = 0.00006
    """Of a token."""
    containers: int = 1
    seconds: float = 120.0
    first_level_s: float = 0.5
    gap_level_s: float = 0.06


@dataclass(eq=False, slots=True)
class ModelSequence:
    came: float
    todo: int
    left: int
    kv: int = 0
    last: float | None = None


@dataclass
class EngineRun:
    """What was seen of a run."""

    first: list[float] = field(default_factory=list)
    gaps: list[tuple[float, int]] = field(default_factory=list)
    preempted: int = 0
    kv_full: float = 0.0
    running: float = 0.0
    waiting: float = 0.0
    prefilled: int = 0
    tokens: int = 0
    ended: int = 0
    inside: float = 0.0
    total_s: float = 0.0
    arrivals: int = 0


def cured_engine(plant: EnginePlant, changes: Mapping[str, float]) -> EnginePlant:
    """The plant once the changes of an action are made."""
    for name, value in changes.items():
        match name:
            case "kv_factor":
                plant = replace(plant, kv=int(plant.kv * value))
            case "chunk":
                plant = replace(plant, chunk=int(value))
            case "max_sequences":
                plant = replace(plant, most=int(value))
            case "containers" | "max_containers":
                plant = replace(plant, containers=int(value))
            case _:
                raise ValueError(f"the model has no {name}")
    return plant


def run_engine(plant: EnginePlant, seed: int) -> EngineRun:
    """Run one container of the plant, with its part of the calls."""
    chance, now = random.Random(seed), 0.0
    coming = _arrivals(plant, chance)
    waiting: list[ModelSequence] = []
    running: list[ModelSequence] = []
    run = EngineRun(arrivals=len(coming))
    while now < plant.seconds:
        while coming and coming[0].came <= now:
            waiting.append(coming.pop(0))
        used = sum(each.kv + each.todo for each in running)
        while waiting and len(running) < plant.most and used + waiting[0].todo <= plant.kv:
            running.append(waiting.pop(0))
            used += running[-1].todo
        if not running:
            now = coming[0].came if coming else plant.seconds
            continue
        now = _step(plant, run, running, waiting, now)
    return run


def _arrivals(plant: EnginePlant, chance: random.Random) -> list[ModelSequence]:
    coming, when, number = [], 0.0, 0
    while when < plant.seconds:
        when += chance.expovariate(plant.rate / plant.containers)
        number += 1
        is_long = plant.long_every and number % plant.long_every == 0
        prompt = plant.long if is_long else max(8, int(chance.gauss(plant.prompt, plant.prompt / 4)))
        coming.append(ModelSequence(when, prompt, max(8, int(chance.gauss(plant.output, plant.output / 4)))))
    return coming


def _step(
    plant: EnginePlant, run: EngineRun, running: list[ModelSequence], waiting: list[ModelSequence], now: float
) -> float:
    budget, prefill = plant.chunk, 0
    decoding = [each for each in running if not each.todo]
    for each in running:
        if each.todo and budget:
            part = min(budget, each.todo)
            each.todo -= part
            each.kv += part
            budget -= part
            prefill += part
    took = plant.step_s + plant.decode_s * len(decoding) + plant.prefill_s * prefill
    now += took
    run.prefilled += prefill
    run.running += len(running) * took
    run.waiting += len(waiting) * took
    for each in decoding:
        each.kv += 1
        each.left -= 1
        run.tokens += 1
        if each.last is not None:
            run.gaps.append((now - each.last, prefill))
        each.last = now
    for each in running:
        if not each.todo and each.last is None:
            run.first.append(now - each.came)
            each.last = now
    run.kv_full += (sum(each.kv for each in running) >= 0.9 * plant.kv) * took
    for each in running:
        if not each.todo and each.left <= 0:
            run.ended += 1
            run.total_s += now - each.came
    running[:] = [each for each in running if each.todo or each.left > 0]
    while sum(each.kv for each in running) > plant.kv:
        gone = running.pop()  # the youngest begins anew: its tokens are computed again
        gone.todo, gone.kv = gone.kv, 0
        waiting.insert(0, gone)
        run.preempted += 1
    return now


def window_of_engine(plant: EnginePlant, seed: int) -> DiagnosisWindow:
    """The window of a run."""
    runs = [run_engine(plant, seed + 1_000 * place) for place in range(plant.containers)]
    seconds, count = plant.seconds, len(runs)
    gaps = [gap for run in runs for gap in run.gaps]
    late = [prefill for gap, prefill in gaps if gap > plant.gap_level_s]
    ended = sum(run.ended for run in runs)
    arrivals = sum(run.arrivals for run in runs)
    facts = EngineFacts(
        tokens_per_s=sum(run.tokens for run in runs) / seconds,
        asked_tokens_per_s=plant.rate * plant.output,
        first_token_ms=_pick([first for run in runs for first in run.first]) * 1000,
        gap_ms=_pick([gap for gap, _ in gaps]) * 1000,
        first_token_level_ms=plant.first_level_s * 1000,
        gap_level_ms=plant.gap_level_s * 1000,
        running=sum(run.running for run in runs) / seconds / count,
        waiting=sum(run.waiting for run in runs) / seconds / count,
        most=plant.most,
        kv_full_part=sum(run.kv_full for run in runs) / seconds / count,
        preempted=sum(run.preempted for run in runs),
        step_ms=plant.step_s * 1000,
        sequence_ms=plant.decode_s * 1000,
        prompt_token_ms=plant.prefill_s * 1000,
        prompt_tokens_per_s=sum(run.prefilled for run in runs) / seconds / count,
        chunk=plant.chunk,
        late_with_prompt=sum(prefill > 0 for prefill in late) / max(1, len(late)),
    )
    return DiagnosisWindow(
        function="llm.chat@v1",
        seconds=seconds,
        level_ms=60_000.0,
        arrivals=arrivals,
        completed=ended,
        left_inside=arrivals - ended,
        containers=float(count),
        slots=plant.most,
        batch_most=plant.most,
        engine=facts,
    )


def _pick(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))] if ordered else 0.0
