"""Token engines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pilotlight_gateway.diagnosis.bottlenecks import Diagnosis, diagnose
from pilotlight_gateway.diagnosis.diagnosis_window import EngineFacts
from tests.gateway.diagnosis.windows import calls, window

ENGINE = EngineFacts(
    tokens_per_s=400.0, asked_tokens_per_s=400.0, first_token_ms=300.0, gap_ms=20.0, first_token_level_ms=500.0,
    gap_level_ms=60.0, running=8.0, waiting=0.0, most=64, kv_full_part=0.0, preempted=0, step_ms=12.0,
    sequence_ms=0.15, prompt_token_ms=0.06, prompt_tokens_per_s=800.0, chunk=512, late_with_prompt=0.0,
)  # fmt: skip


def found(**changes: Any) -> Diagnosis:
    return diagnose(window(calls(execute=4_000.0), engine=replace(ENGINE, **changes), containers=30.0))


def test_an_engine_in_time_is_not_slow_however_long_its_answers_are() -> None:
    assert found().name == "nothing"


def test_a_full_cache_keeps_sequences_waiting() -> None:
    kv = found(kv_full_part=0.9, waiting=18.0, running=21.0, first_token_ms=9_000.0, asked_tokens_per_s=1_300.0)

    assert kv.name == "kv"
    assert "is full 90% of the time with 21 of 64 sequences, and 18 wait" in kv.says


def test_prompts_in_the_same_steps_make_gaps() -> None:
    itl = found(gap_ms=130.0, chunk=2_048, late_with_prompt=1.0, first_token_level_ms=2_000.0)

    assert itl.name == "itl"
    assert itl.cures[0].what == "at most 580 tokens of prompts a step"
    assert [promise.metric for promise in itl.promises] == ["gap_ms", "first_token_ms"]


def test_a_smaller_chunk_is_no_cure_if_it_makes_first_tokens_late() -> None:
    itl = found(gap_ms=130.0, chunk=2_048, late_with_prompt=1.0, first_token_ms=480.0, prompt_tokens_per_s=12_000.0)

    assert itl.cures[0].what == "prompts on a slice of their own"
    assert itl.promises == ()


def test_too_many_sequences_make_gaps_without_prompts() -> None:
    wide = found(gap_ms=75.0, running=60.0, step_ms=30.0, sequence_ms=0.6, asked_tokens_per_s=960.0)

    assert wide.name == "itl_batch"
    assert wide.cures[0].what == "2 containers"


def test_a_step_that_takes_too_long_by_itself_is_the_bound() -> None:
    slow = found(gap_ms=75.0, running=1.0, step_ms=70.0)

    assert slow.name == "execute"
    assert "a single sequence takes 70 ms, of 60 ms that may be between two tokens" in slow.says


def test_few_calls_of_many_tokens_say_enough() -> None:
    facts = window(calls(execute=4_000.0), engine=ENGINE, completed=12, arrivals=12, mean_inside=None, busy_s=None)

    assert diagnose(facts).name == "nothing"


def test_an_engine_that_computes_all_that_it_can_is_the_bound() -> None:
    assert found(first_token_ms=4_000.0, waiting=9.0, running=64.0).name == "gpu"
