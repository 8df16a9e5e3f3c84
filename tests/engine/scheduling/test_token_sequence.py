"""One sequence while it is in an engine."""

from __future__ import annotations

from pilotlight_engine.engine_port import SequenceUsage
from pilotlight_engine.scheduling.token_sequence import StepPlan, StepSpan, TokenSequence
from tests.engine.generations import request


def test_what_it_has_generated_is_what_it_goes_on_with() -> None:
    """Under the same request, but for that."""
    asked = request("a", (1, 2), prefix_out=(3,))
    sequence = TokenSequence(request=asked, arrival=0, root=b"", tokens=[1, 2, 3, 4], computed=3, cached=1)

    assert (sequence.generated, sequence.pending) == (2, 1)
    assert sequence.as_request() == request("a", (1, 2), prefix_out=(3, 4))
    assert sequence.usage() == SequenceUsage(prompt_tokens=2, completion_tokens=2, cached_tokens=1)


def test_a_span_draws_if_it_ends_where_the_tokens_do() -> None:
    """Longer spans come first in a plan."""
    sequence = TokenSequence(request=request("a"), arrival=0, root=b"", tokens=[1, 2, 3])
    part, last = (StepSpan(sequence=sequence, start=start, end=start + 1) for start in (1, 2))
    plan = StepPlan(decodes=(last,), prefills=(part,))

    assert (part.draws, last.draws) == (False, True)
    assert plan.spans == (part, last)
    assert plan
    assert not StepPlan(decodes=(), prefills=())
