"""Facts that follow from others."""

from __future__ import annotations

from pilotlight_gateway.diagnosis.diagnosis_window import EngineFacts, QuotaFacts
from tests.gateway.diagnosis.windows import window


def test_calls_that_ended_are_those_that_did_well_and_those_that_failed() -> None:
    facts = window(arrivals=1_400, failed={"rate_limited": 300, "load_failed": 100})

    assert (facts.refused, facts.ended, facts.rate) == (400, 1_400, 10.0)
    assert facts.codes("load_failed", "breaker_open") == 100


def test_a_limit_is_raised_without_losing_what_is_set_beside_it() -> None:
    """`quota set` replaces all that is set in one place."""
    alone = QuotaFacts(limit="containers", tenant="shop", allowed=4.0)
    beside = QuotaFacts(
        limit="requests_per_s", tenant="shop", allowed=4.0, function="app.f", beside="concurrency=9 cost_per_s=500"
    )

    assert alone.command(8) == "pilotlight quota set shop containers=8"
    assert beside.command(26) == (
        "pilotlight quota set shop requests_per_s=26 concurrency=9 cost_per_s=500 --function app.f"
    )


def test_a_step_takes_longer_with_each_sequence() -> None:
    engine = EngineFacts(
        tokens_per_s=1.0, asked_tokens_per_s=1.0, first_token_ms=1.0, gap_ms=1.0, first_token_level_ms=1.0,
        gap_level_ms=1.0, running=1.0, waiting=0.0, most=1, kv_full_part=0.0, preempted=0, step_ms=12.0,
        sequence_ms=0.5, prompt_token_ms=0.1, prompt_tokens_per_s=0.0, chunk=512, late_with_prompt=0.0,
    )  # fmt: skip

    assert engine.step_of(8) == 16.0
