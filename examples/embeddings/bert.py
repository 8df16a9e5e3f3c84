"""A BERT sentence encoder in plain torch: token ids in, one vector of length 1 per text out.

The whole model is one walk over a dictionary of named tensors, in the order of the checkpoint:

    words + positions + type  ->  [ attention -> feed-forward ] x layers  ->  mean over the words  ->  length 1

There are no modules to construct, so that loading costs what reading the file costs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, kw_only=True)
class BertConfig:
    """The numbers of `config.json` that the walk needs."""

    layers: int
    heads: int
    width: int
    epsilon: float
    max_tokens: int

    @classmethod
    def read(cls, folder: Path) -> BertConfig:
        """Read a model folder as sentence-transformers lays it out."""
        bert = json.loads((folder / "config.json").read_text())
        sentence = json.loads((folder / "sentence_bert_config.json").read_text())
        if bert["hidden_act"] != "gelu" or bert["position_embedding_type"] != "absolute":
            raise ValueError("this encoder knows gelu and absolute positions only")
        return cls(
            layers=bert["num_hidden_layers"],
            heads=bert["num_attention_heads"],
            width=bert["hidden_size"],
            epsilon=bert["layer_norm_eps"],
            max_tokens=sentence["max_seq_length"],
        )


class SentenceEncoder:
    """Texts to unit vectors, on one device, in float32."""

    def __init__(self, folder: Path, device: str = "cpu") -> None:
        self.config = BertConfig.read(folder)
        self.device = torch.device(device)
        self.weights = load_file(folder / "model.safetensors", device=device)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(self.config.max_tokens)
        self.tokenizer.enable_padding()  # to the longest text of a batch; the file asks for a fixed length

    @torch.inference_mode()
    def encode(self, texts: list[str]) -> Tensor:
        """One row per text; rows are unit vectors, so a dot product is the cosine similarity."""
        if not texts:
            return torch.empty(0, self.config.width)
        encodings = self.tokenizer.encode_batch(texts)
        ids = torch.tensor([encoding.ids for encoding in encodings], device=self.device)
        present = torch.tensor([encoding.attention_mask for encoding in encodings], device=self.device).bool()
        return functional.normalize(mean_of_present(self.hidden(ids, present), present)).cpu()

    def hidden(self, ids: Tensor, present: Tensor) -> Tensor:
        """The last hidden state, (batch, tokens, width); `present` is False where a text is padded."""
        x = self._embed(ids)
        for layer in range(self.config.layers):
            x = self._layer(x, present, f"encoder.layer.{layer}")
        return x

    def _embed(self, ids: Tensor) -> Tensor:
        words = self.weights["embeddings.word_embeddings.weight"][ids]
        positions = self.weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        first_sentence = self.weights["embeddings.token_type_embeddings.weight"][0]
        return self._norm(words + positions + first_sentence, "embeddings.LayerNorm")

    def _layer(self, x: Tensor, present: Tensor, name: str) -> Tensor:
        attended = self._linear(self._attend(x, present, f"{name}.attention.self"), f"{name}.attention.output.dense")
        x = self._norm(x + attended, f"{name}.attention.output.LayerNorm")
        expanded = functional.gelu(self._linear(x, f"{name}.intermediate.dense"))
        return self._norm(x + self._linear(expanded, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _attend(self, x: Tensor, present: Tensor, name: str) -> Tensor:
        query, key, value = (
            self._linear(x, f"{name}.{part}").view(*x.shape[:2], self.config.heads, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=present[:, None, None, :])
        return mixed.transpose(1, 2).flatten(2)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        scale, shift = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return functional.layer_norm(x, (self.config.width,), scale, shift, self.config.epsilon)


def mean_of_present(hidden: Tensor, present: Tensor) -> Tensor:
    """The mean over a text's own tokens; padding counts for nothing."""
    weight = present.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weight).sum(dim=1) / weight.sum(dim=1)
