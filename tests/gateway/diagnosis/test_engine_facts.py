"""The facts of a token engine."""

from __future__ import annotations

import math
import random

from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_gateway.diagnosis.engine_facts import engine_facts, step_times
from pilotlight_gateway.fleet.container_history import EngineSample

STEP_MS, SEQUENCE_MS, PROMPT_MS = 12.0, 0.2, 0.05


def told(count: int = 40, **more: float) -> list[EngineSample]:
    """What an engine told whose steps take as long as the three numbers say."""
    chance, found = random.Random(7), []
    before = EngineReport(running=8)
    for _ in range(count):
        steps, sequences, prompts = chance.randint(20, 60), chance.randint(2, 40), chance.choice((0, 200, 400))
        seconds = steps * (STEP_MS + SEQUENCE_MS * sequences + PROMPT_MS * prompts) / 1000
        after = EngineReport(
            running=sequences, steps=before.steps + steps, decode_tokens=before.decode_tokens + steps * sequences,
            prefill_tokens=before.prefill_tokens + steps * prompts, kv_used=90, kv_total=100, token_budget=512,
            first_token_ms=more.get("first", 200.0), inter_token_ms=more.get("gap", 30.0),
        )  # fmt: skip
        found.append(EngineSample("c1", seconds, before, after))
        before = after
    return found


def test_the_times_of_steps_are_those_of_least_squares() -> None:
    step, sequence, prompt = step_times(told())

    assert math.isclose(step, STEP_MS, rel_tol=0.1)
    assert math.isclose(sequence, SEQUENCE_MS, rel_tol=0.2)
    assert math.isclose(prompt, PROMPT_MS, rel_tol=0.1)


def test_an_idle_engine_tells_its_last_step() -> None:
    idle = [EngineSample("c1", 1.0, EngineReport(), EngineReport(step_us=15_000))]

    assert step_times(idle) == (15.0, 0.0, 0.0)


def test_of_few_reports_nothing_is_said() -> None:
    assert engine_facts(told(3), most=64, first_level_ms=None, gap_level_ms=None) is None


def test_a_full_cache_is_seen_and_tokens_are_counted() -> None:
    samples = told()
    facts = engine_facts(samples, most=64, first_level_ms=500.0, gap_level_ms=60.0)

    assert facts is not None
    assert (facts.kv_full_part, facts.chunk, facts.most) == (1.0, 512, 64)
    seconds = sum(sample.seconds for sample in samples)
    assert math.isclose(facts.tokens_per_s, samples[-1].after.decode_tokens / seconds)


def test_gaps_that_steps_without_prompts_would_not_make_are_the_prompts() -> None:
    facts = engine_facts(told(gap=90.0), most=64, first_level_ms=500.0, gap_level_ms=60.0)

    assert facts is not None
    assert facts.late_with_prompt == 1.0


def test_levels_that_are_not_named_are_kept() -> None:
    facts = engine_facts(told(gap=90.0, first=9_000.0), most=64, first_level_ms=None, gap_level_ms=None)

    assert facts is not None
    assert facts.gap_ms <= facts.gap_level_ms
    assert facts.first_token_ms <= facts.first_token_level_ms
