"""What another container needs of an answer."""

from __future__ import annotations

from pilotlight_core.model.streams.resuming import MAX_STATE
from pilotlight_engine.serving.answer_state import MOST_TOKENS, AnswerState, decode_state, encode_state, packed


def test_a_state_comes_back() -> None:
    state = AnswerState(seed=2**55, at=1.5, tokens=packed([1, 2**31, 7]), chunk={"text": "a", "token_ids": [1]})

    assert decode_state(encode_state(state)) == state
    assert state.token_ids == (1, 2**31, 7)


def test_the_largest_one_fits_a_message() -> None:
    chunk = {"text": "x" * 4096, "token_ids": list(range(1024))}

    assert len(encode_state(AnswerState(seed=1, at=0.0, tokens=packed([1] * MOST_TOKENS), chunk=chunk))) < MAX_STATE
