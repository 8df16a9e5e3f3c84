"""A tokenizer of bytes and a few merges, as models have it in tokenizer.json."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TEXT = ["the model says what it says, and the reader reads it. Grün wächst das Gras; 🌱 is a leaf."] * 4
END_TEXT = "<|end|>"


def small_tokenizer(folder: Path) -> Path:
    """Train one and save it in the folder."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=[END_TEXT], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(TEXT, trainer)
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return path
