"""Tokenizers: that of a model's weights, and the simulated one."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_engine.text.text_tokenizer import END, FileTokenizer, SimTokenizer, tokenizer_of
from tests.engine.text.small_tokenizer import small_tokenizer


def test_the_tokenizer_of_weights_reads_and_writes_text(tmp_path: Path) -> None:
    """What it reads comes back, without the special tokens that it adds."""
    small_tokenizer(tmp_path)
    tokenizer = tokenizer_of(tmp_path)

    ids = tokenizer.encode("grün wächst 🌱", special=True)
    assert tokenizer.decode(ids) == "grün wächst 🌱"
    assert all(0 <= one < tokenizer.vocabulary for one in ids)
    assert tokenizer.token_text(tokenizer.encode("<|end|>", special=False)[0]) == "<|end|>"


def test_weights_without_a_tokenizer_are_refused_by_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"have no tokenizer.json: save the tokenizer beside the model"):
        tokenizer_of(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match=r"tokenizer.json of the weights .* cannot be read"):
        tokenizer_of(tmp_path)


def test_a_simulated_one_says_a_syllable_for_each_token() -> None:
    """Each of its own, and nothing for the end."""
    tokenizer = tokenizer_of(None)

    assert isinstance(tokenizer, SimTokenizer)
    assert tokenizer.encode("ä", special=True) == [195, 164]
    assert len({tokenizer.token_text(token).strip() for token in range(256)}) == 256
    assert tokenizer.decode([0, 1, END]) == tokenizer.token_text(0) + tokenizer.token_text(1)
    assert not isinstance(tokenizer, FileTokenizer)
