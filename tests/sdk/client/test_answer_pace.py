"""How fast the tokens of answers came back."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight.client.answer_pace import TokenTimes, pace_of


def answer(*chunks: tuple[float, Any], asked_at: float = 10.0) -> TokenTimes:
    times = TokenTimes(asked_at)
    for at, chunk in chunks:
        times.add(chunk, asked_at + at)
    return times


def ids(count: int) -> dict[str, Any]:
    return {"text": "x", "token_ids": [1] * count}


def test_the_first_token_and_those_after_it_are_told_apart() -> None:
    """Tokens that come in one chunk share the time since the one before."""
    pace = pace_of(2, [answer((0.2, ids(1)), (0.24, ids(4))), answer((0.4, ids(1)), (0.5, ids(1)))], 0.5)

    assert pace is not None
    assert (pace.batch, pace.answers, pace.tokens_per_second) == (2, 2, 14.0)
    assert (pace.ttft_p50_ms, pace.ttft_p95_ms) == (200.0, 400.0)
    assert (pace.itl_p50_ms, pace.itl_p95_ms) == (10.0, 100.0)


def test_one_token_has_nothing_between() -> None:
    pace = pace_of(1, [answer((0.2, ids(1)))], 1.0)

    assert pace is not None
    assert (pace.ttft_p95_ms, pace.itl_p95_ms) == (200.0, 0.0)


@pytest.mark.parametrize("chunk", ["text", 3, None, {"token_ids": []}, {"token_ids": "abc"}, {"tokens": [1]}])
def test_what_is_no_engines_has_no_pace(chunk: Any) -> None:
    """Whatever else a stream brings."""
    assert pace_of(1, [answer((0.1, chunk))], 1.0) is None
