"""How long a simulated step takes."""

from __future__ import annotations

import pytest

from pilotlight_engine.scheduling.token_sequence import StepPlan, StepSpan, TokenSequence
from pilotlight_engine.sim.step_costs import StepCosts
from tests.engine.generations import request


def test_a_step_costs_itself_its_tokens_and_what_it_reads() -> None:
    """A chunk of 10 tokens after 90, and a decode after 49."""
    sequence = TokenSequence(request=request("a"), arrival=0, root=b"", tokens=[1] * 100)
    plan = StepPlan(
        prefills=(StepSpan(sequence=sequence, start=90, end=100),),
        decodes=(StepSpan(sequence=sequence, start=49, end=50),),
    )
    costs = StepCosts(step_ms=5, prefill_token_ms=0.1, decode_token_ms=0.5, stored_token_ms=0.01)

    assert costs.duration_ms(plan) == pytest.approx(5 + 10 * 0.1 + 0.5 + 150 * 0.01)
