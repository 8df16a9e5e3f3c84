"""Where the time of a kept call went, end to end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.tracing.kept_call import KeptAttempt, KeptCall, KeptWhy
from pilotlight_gateway.traces.call_segments import attempts_of, segments_of
from tests.builders.kept import STAGES, kept_call

ms = st.floats(0.0, 1e5)


def summed(call: KeptCall) -> float:
    return sum(segment.ms for segment in segments_of(call))


def test_the_stages_follow_each_other_and_sum_to_the_call() -> None:
    segments = segments_of(kept_call())
    assert [segment.name for segment in segments] == [*STAGES]
    assert summed(kept_call()) == pytest.approx(1_000.0)
    ends = [0.0, *(segment.begin_ms + segment.ms for segment in segments)]
    assert [segment.begin_ms for segment in segments] == pytest.approx(ends[:-1])


def test_of_a_start_the_steps_are_shown_that_the_call_waited_for() -> None:
    """It came while the first was under way: 700 of its 900 ms."""
    (start,) = [segment for segment in segments_of(kept_call()) if segment.name == "start"]
    assert [(step.name, round(step.begin_ms), round(step.ms)) for step in start.steps] == [
        ("fetch", 50, 100),
        ("import", 150, 200),
        ("enter", 350, 400),
    ]


def test_each_attempt_has_stages_of_its_own() -> None:
    """And the last one, whose end nobody has told, what the others have left."""
    died = KeptAttempt(container="c1", outcome="died", queue=10.0, transport=5.0, execute=100.0)
    call = kept_call(code="deadline_exceeded", attempts=(died,), cold_start=None, total_ms=500.0,
                     stages={"gateway": 1.0, "queue": 300.0, "transport": 5.0, "execute": 100.0})  # fmt: skip
    assert [(segment.name, segment.attempt, segment.ms) for segment in segments_of(call)] == [
        ("gateway", 0, 1.0), ("queue", 1, 10.0), ("transport", 1, 5.0), ("execute", 1, 100.0), ("queue", 2, 290.0),
        ("respond", 0, 94.0),
    ]  # fmt: skip
    assert [one.outcome for one in attempts_of(call)] == ["died", ""]


def test_a_hook_is_one_part_with_its_waits() -> None:
    """The attempts of the hooks are in it."""
    stages = {"gateway": 1.0, "preprocess": 60.0, "queue": 2.0, "execute": 30.0, "postprocess": 7.0}
    call = kept_call(stages=stages, total_ms=100.0, cold_start=None)
    assert [segment.name for segment in segments_of(call)][:2] == ["gateway", "preprocess"]
    assert summed(call) >= 100.0


def test_a_refused_request_is_one_part() -> None:
    call = KeptCall(id="req_1", tenant="acme", kept=KeptWhy.ERROR, code="rate_limited", total_ms=0.4)
    assert [(segment.name, segment.ms) for segment in segments_of(call)] == [("gateway", 0.4)]


@given(stages=st.dictionaries(st.sampled_from([*STAGES, "preprocess", "what"]), ms), tried=st.lists(ms, max_size=4))
def test_whatever_is_kept_can_be_drawn(stages: dict[str, float], tried: list[float]) -> None:
    """Parts have no negative length, and none begins before the one before has ended."""
    attempts = tuple(KeptAttempt(outcome="gone", started=False, queue=each) for each in tried)
    at = 0.0
    for segment in segments_of(kept_call(stages=stages, attempts=attempts)):
        assert segment.ms > 0.0
        assert segment.begin_ms >= at - 1e-6
        at = segment.begin_ms + segment.ms
        for step in segment.steps:
            assert segment.begin_ms - 1e-6 <= step.begin_ms
            assert step.begin_ms + step.ms <= at + 1e-6
