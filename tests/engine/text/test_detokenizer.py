"""The text of tokens as they come."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from pilotlight_engine.text.detokenizer import HALF, LONGEST_WAIT, Detokenizer
from pilotlight_engine.text.text_tokenizer import TextTokenizer, tokenizer_of
from tests.engine.text.small_tokenizer import small_tokenizer

SAID = "Grün 🌱 wächst, 漢字 und ein 👩‍🚀!"


@pytest.fixture
def tokenizer(tmp_path: Path) -> TextTokenizer:
    small_tokenizer(tmp_path)
    return tokenizer_of(tmp_path)


def pieces(tokenizer: TextTokenizer, ids: list[int]) -> list[str]:
    stream = Detokenizer(tokenizer)
    return [*(stream.add(token) for token in ids), stream.flush()]


def test_pieces_make_the_text_and_none_ends_inside_a_character(tokenizer: TextTokenizer) -> None:
    ids = tokenizer.encode(SAID, special=False)
    said = pieces(tokenizer, ids)

    assert "".join(said) == SAID
    assert len(ids) > len(SAID)  # several tokens for one character
    assert not any(HALF in piece for piece in said)


def test_half_a_character_at_the_end_is_said_so(tokenizer: TextTokenizer) -> None:
    ids = tokenizer.encode("a🌱", special=False)

    assert "".join(pieces(tokenizer, ids[:-1])) == f"a{HALF}"


def test_what_is_no_text_does_not_wait_for_ever(tokenizer: TextTokenizer) -> None:
    """A model may write bytes that are no characters."""
    half = tokenizer.encode("🌱", special=False)[0]
    stream = Detokenizer(tokenizer)

    said = [stream.add(half) for _ in range(3 * LONGEST_WAIT)]
    assert sum(map(bool, said)) >= 2


def test_any_tokens_give_the_text_that_they_have_together(tokenizer: TextTokenizer) -> None:
    """Also those that no text has."""
    random = Random(7)
    for _ in range(50):
        ids = [token for _ in range(8) for token in tokenizer.encode(random.choice(SAID), special=False)]
        assert "".join(pieces(tokenizer, ids)) == tokenizer.decode(ids)


def test_tokens_without_a_text_are_not_decoded_again_and_again(
    tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that repeats its end token, for a caller who ignores it, costs no more for each token that it said."""
    decoded: list[int] = []
    whole = tokenizer.decode

    def decode(ids: Sequence[int]) -> str:
        decoded.append(len(ids))
        return whole(ids)

    monkeypatch.setattr(tokenizer, "decode", decode)
    ids = [*tokenizer.encode("so", special=False), *[0] * 500, *tokenizer.encode(SAID, special=False)]

    assert "".join(pieces(tokenizer, ids)) == f"so{SAID}"
    assert max(decoded) < 3 * LONGEST_WAIT
