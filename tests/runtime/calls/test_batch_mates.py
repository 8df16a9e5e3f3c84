"""The calls of a batch are told where somebody may ask, and nowhere else."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_core.model.tracing.kept_call import MOST_MATES
from pilotlight_core.model.tracing.trace_context import context_within
from pilotlight_runtime.calls.batch_mates import told_mates
from pilotlight_runtime.calls.slot_table import AcceptedCall
from tests.builders.calls import run

TRACE = f"00-{'a' * 32}-{'b' * 16}-"


def accepted(name: str, traceparent: str = "") -> AcceptedCall:
    return AcceptedCall(run(name, traceparent=traceparent), 0.0, 0.0)


@pytest.mark.parametrize(
    ("traceparent", "outcome", "took_ms", "level_ms", "is_told"),
    [
        ("", Outcome.OK, 10.0, None, False),
        (TRACE + "00", Outcome.OK, 10.0, None, False),
        (TRACE + "01", Outcome.OK, 10.0, None, True),
        ("", Outcome.RAISED, 10.0, None, True),
        ("", Outcome.OK, 1_000.0, None, True),
        ("", Outcome.OK, 1_000.0, 2_000.0, False),
        ("", Outcome.OK, 60.0, 50.0, True),
    ],
)
def test_a_batch_is_told_of_a_call_that_somebody_may_ask_about(
    traceparent: str, outcome: Outcome, took_ms: float, level_ms: float | None, is_told: bool
) -> None:
    """One that is sampled, has failed, or took longer than its function's level. By the spans of their execution."""
    call, other = accepted("one", traceparent), accepted("two", TRACE + "01 congo=1")
    found = told_mates(call, [call, other], outcome, took_ms, level_ms)
    assert found == ((context_within("two", TRACE + "01").header,) if is_told else ())


def test_of_a_large_batch_no_more_than_the_bound_are_told() -> None:
    batch = [accepted(f"call_{number}") for number in range(100)]
    assert len(told_mates(batch[0], batch, Outcome.DIED, 1.0, None)) == MOST_MATES
