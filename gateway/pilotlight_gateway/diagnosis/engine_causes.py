"""Token engines: room for keys and values, and what stands between two tokens."""

from __future__ import annotations

import math

from pilotlight_gateway.diagnosis.diagnosis_case import DiagnosisCase
from pilotlight_gateway.diagnosis.diagnosis_window import EngineFacts
from pilotlight_gateway.diagnosis.suspects import CallTrouble, Cure, CureCost, Promise, Suspect

PROMPTS = 0.8
"""Of the gaps that are too long: so many with a prompt in their step are the prompts' fault."""
AIM = 0.8
"""The part of a level that an action aims at."""


def kv_bound(case: DiagnosisCase) -> Suspect | None:
    """The room for keys and values is full, and sequences wait for it."""
    engine = case.window.engine
    if engine is None or engine.kv_full_part < 0.5 or engine.waiting <= 0.5 or engine.running >= 0.9 * engine.most:
        return None
    twice = min(float(engine.most), 2 * engine.running)
    more = twice / engine.step_of(twice) / (engine.running / engine.step_of(engine.running))
    return Suspect(
        name="kv",
        gains={CallTrouble.TOKENS: 1.0},
        says=(
            f"KV-bound: the cache of {case.what} is full {engine.kv_full_part:.0%} of the time with "
            f"{engine.running:.0f} of {engine.most} sequences, and {engine.waiting:.0f} wait."
        ),
        evidence=(f"{engine.preempted} sequences were thrown out and computed again", _pace(engine)),
        cures=(
            Cure(
                cost=CureCost.VERSION,
                what="a cache of half the bytes for a token (8 bits): twice the tokens",
                changes={"kv_factor": 2.0},
            ),
            Cure(cost=CureCost.SETTING, what="a lower max_tokens, so that sequences end sooner"),
            Cure(cost=CureCost.HARDWARE, what="a larger slice"),
        ),
        promises=(
            Promise(
                metric="tokens_per_s", value=min(engine.asked_tokens_per_s, engine.tokens_per_s * more), tolerance=0.15
            ),
        ),
    )


def prompts_block(case: DiagnosisCase) -> Suspect | None:
    """First tokens are in time, the next ones are not: prompts of others are computed in the same steps."""
    engine = case.window.engine
    if engine is None or not _only_gaps_late(engine) or engine.late_with_prompt < PROMPTS:
        return None
    alone = engine.step_of(engine.running)
    if alone >= AIM * engine.gap_level_ms:
        return None
    chunk = max(32, int((AIM * engine.gap_level_ms - alone) / max(1e-6, engine.prompt_token_ms)))
    first = _first_after(engine, chunk)
    fits = first <= 0.9 * engine.first_token_level_ms
    smaller = Cure(
        cost=CureCost.SETTING, what=f"at most {chunk} tokens of prompts a step", changes={"chunk": float(chunk)}
    )
    apart = Cure(cost=CureCost.HARDWARE, what="prompts on a slice of their own")
    gap = alone + engine.prompt_token_ms * chunk
    return Suspect(
        name="itl",
        gains={CallTrouble.TOKENS: 1.0},
        says=(
            f"First tokens of {case.what} are in time, the next ones are not: {engine.late_with_prompt:.0%} of the "
            "late gaps had somebody's prompt in the same step."
        ),
        evidence=(
            _pace(engine),
            (
                f"{engine.chunk} tokens of prompts take {engine.prompt_token_ms * engine.chunk:.0f} ms, a step without "
                f"them {alone:.0f} ms"
            ),
            (
                f"with {chunk} a step first tokens would take {first:.0f} ms: "
                f"{'in time' if fits else 'too late, so no setting helps'}"
            ),
        ),
        cures=(smaller, apart) if fits else (apart,),
        promises=(
            Promise(metric="gap_ms", value=gap, tolerance=0.25, at_most=True),
            Promise(metric="first_token_ms", value=first, tolerance=0.5, at_most=True),
        )
        if fits
        else (),
    )


def _first_after(engine: EngineFacts, chunk: int) -> float:
    """What the time to a first token would be with another chunk."""

    def per_token(size: int) -> float:
        return (engine.step_of(engine.running) + engine.prompt_token_ms * size) / size

    load = min(0.99, engine.prompt_tokens_per_s * per_token(engine.chunk) / 1000)
    then = engine.prompt_tokens_per_s * per_token(chunk) / 1000
    if then >= 1:
        return math.inf
    return engine.first_token_ms * per_token(chunk) / per_token(engine.chunk) * (1 - load) / (1 - then)


def steps_too_wide(case: DiagnosisCase) -> Suspect | None:
    """First tokens are in time, the next ones are not: a step has too many sequences."""
    engine = case.window.engine
    if engine is None or not _only_gaps_late(engine) or prompts_block(case) is not None:
        return None
    fits = max(1, int((AIM * engine.gap_level_ms - engine.step_ms) / max(1e-6, engine.sequence_ms)))
    if fits >= engine.running:
        return None
    need = math.ceil(engine.asked_tokens_per_s * engine.step_of(fits) / 1000 / fits)
    enough = Cure(cost=CureCost.SETTING, what=f"max_sequences={fits}", changes={"max_sequences": float(fits)})
    more = Cure(cost=CureCost.GPU_TIME, what=f"{need} containers", changes={"containers": float(need)})
    return Suspect(
        name="itl_batch",
        gains={CallTrouble.TOKENS: 1.0},
        says=(
            f"First tokens of {case.what} are in time, the next ones are not: a step over {engine.running:.0f} "
            f"sequences takes {engine.step_of(engine.running):.0f} ms."
        ),
        evidence=(
            _pace(engine),
            (
                f"{fits} sequences a step keep the gap, and give {1000 * fits / engine.step_of(fits):.0f} of the "
                f"{engine.asked_tokens_per_s:.0f} tokens/s asked for"
            ),
        ),
        cures=(more, Cure(cost=CureCost.VERSION, what="a version with lighter steps")) if need > 1 else (enough,),
        promises=(
            Promise(metric="gap_ms", value=engine.step_of(fits), tolerance=0.3, at_most=True),
            Promise(metric="first_token_ms", value=engine.first_token_level_ms, tolerance=0.0, at_most=True),
        ),
    )


def step_too_slow(case: DiagnosisCase) -> Suspect | None:
    """A step over one sequence alone takes longer than the level of gaps."""
    engine = case.window.engine
    if engine is None or engine.gap_ms <= engine.gap_level_ms or engine.step_of(1) <= engine.gap_level_ms:
        return None
    factor = AIM * engine.gap_level_ms / engine.step_of(1)
    return Suspect(
        name="execute",
        gains={CallTrouble.TOKENS: 1.0},
        says=(
            f"Bound by its own steps: one of {case.what} over a single sequence takes {engine.step_of(1):.0f} ms, of "
            f"{engine.gap_level_ms:.0f} ms that may be between two tokens."
        ),
        evidence=(_pace(engine), "no number of sequences or containers makes a step shorter"),
        cures=(
            Cure(
                cost=CureCost.VERSION,
                what=f"a model, or a slice, whose steps take {factor:.0%} of that",
                changes={"step_factor": factor},
            ),
            Cure(cost=CureCost.SETTING, what="another itl_ms in slo=, if so long is fine"),
        ),
        promises=(Promise(metric="gap_ms", value=engine.gap_level_ms, tolerance=0.1, at_most=True),),
    )


def engine_full(case: DiagnosisCase) -> Suspect | None:
    """First tokens are late since the engine computes all that it can."""
    engine = case.window.engine
    if engine is None or engine.first_token_ms <= engine.first_token_level_ms or engine.waiting <= 0.5:
        return None
    if kv_bound(case) is not None:
        return None
    more = max(2, math.ceil(case.ready * engine.asked_tokens_per_s / max(1e-6, engine.tokens_per_s) / AIM))
    return Suspect(
        name="gpu",
        gains={CallTrouble.TOKENS: 0.9},
        says=(
            f"GPU-bound: {case.what} gives {engine.tokens_per_s:.0f} tokens/s of {engine.asked_tokens_per_s:.0f} asked "
            f"for, and {engine.waiting:.0f} sequences wait."
        ),
        evidence=(_pace(engine),),
        cures=(
            Cure(
                cost=CureCost.GPU_TIME,
                what=f"{more} containers",
                command=f"pilotlight scale {case.what.partition('@')[0]} --max {more}",
                changes={"containers": float(more), "max_containers": float(more)},
            ),
        ),
        promises=(Promise(metric="first_token_ms", value=engine.first_token_level_ms, tolerance=0.0, at_most=True),),
    )


def _only_gaps_late(engine: EngineFacts) -> bool:
    return engine.gap_ms > engine.gap_level_ms and engine.first_token_ms <= engine.first_token_level_ms


def _pace(engine: EngineFacts) -> str:
    return (
        f"95 of 100 first tokens come within {engine.first_token_ms:.0f} ms of {engine.first_token_level_ms:.0f}, "
        f"next ones within {engine.gap_ms:.0f} of {engine.gap_level_ms:.0f}"
    )
