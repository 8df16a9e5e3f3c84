"""A step by the layers' weights without the layers' modules: what most steps on a CPU are.

With small models half of a step's time goes into calls of modules and small operations between the matrix products.
Here one product makes queries, keys and values, another both halves of the feed-forward part, additions ride along with
products, and the last layer takes of a prompt's tokens only what others need of them. It computes what the modules
compute, in the same precision, for the architectures of LEAN; adapters, vectors, other precisions and other
architectures go through the model itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn.functional import embedding, silu

from pilotlight_engine.transformer.matrix_product import MatrixProduct, may_pack, product
from pilotlight_engine.transformer.paged_attention import attend, attend_drawing
from pilotlight_engine.transformer.rotary_table import RotaryTable
from pilotlight_engine.transformer.step_batch import StepBatch

LEAN = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Layer:
    number: int
    before: torch.Tensor
    after: torch.Tensor
    """The two norms' weights."""
    qkv: tuple[MatrixProduct, ...]
    """Queries, keys and values; of the last layer queries apart."""
    heads_norm: torch.Tensor | None
    """Of queries and keys, `[heads + kv_heads, size]`, where the architecture has it."""
    out: MatrixProduct
    gate_up: MatrixProduct
    down: MatrixProduct
    scaling: float
    window: int | None


class LeanDecoder:
    """The model's own weights: those that are joined become parts of one tensor, of which the model has views."""

    def __init__(self, model: Any, heads: int, kv_heads: int, head_size: int) -> None:
        base = model.model
        self._heads, self._kv_heads, self._size = heads, kv_heads, head_size
        self._rotary = RotaryTable(base.rotary_emb)
        joined = [_join(layer) for layer in base.layers]
        self._embeddings, head = base.embed_tokens.weight, model.lm_head.weight
        packs = may_pack([head, *(weight for each in joined for weight in each.values())])
        last = len(joined) - 1
        self._layers = [
            _layer_of(number, layer, joined[number], heads * head_size if number == last else 0, is_packed=packs)
            for number, layer in enumerate(base.layers)
        ]
        self._act: Callable[[torch.Tensor], torch.Tensor] = base.layers[0].mlp.act_fn
        if model.config.hidden_act == "silu":
            self._act = partial(silu, inplace=True)
        self._norm = base.norm.weight
        self._eps = torch.full((1,), base.norm.variance_epsilon)
        self._head = product(head, is_packed=packs)

    def logits(self, batch: StepBatch, keep: list[int]) -> torch.Tensor | None:
        """Those of the rows `keep`, which draw, `[kept, vocabulary]`; None: there are none."""
        hidden = embedding(batch.ids[0], self._embeddings)
        cos, sin = self._rotary.at(batch.positions[0], batch.longest)
        *before, last = self._layers
        for layer in before:
            normed = self._normed(hidden, layer.before)
            joined = layer.qkv[0].of(normed).view(hidden.shape[0], -1, self._size)
            self._turn(joined[:, : -self._kv_heads], layer.heads_norm, cos, sin)
            query, keys_values = joined[:, : self._heads], joined[:, self._heads :]
            found = attend(batch, layer.number, query, keys_values, layer.scaling, layer.window, None)
            hidden = self._forwarded(layer, hidden, found)
        kept = self._last(last, batch, hidden, cos, sin, keep)
        return None if kept is None else self._head.of(self._normed(kept, self._norm))

    def _last(
        self,
        layer: _Layer,
        batch: StepBatch,
        hidden: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        keep: list[int],
    ) -> torch.Tensor | None:
        """The last layer: of a token after which nothing is drawn it takes keys and values, and no more."""
        heads, norm, (queries, keys_and_values) = self._heads, layer.heads_norm, layer.qkv
        normed = self._normed(hidden, layer.before)
        keys_values = keys_and_values.of(normed).view(hidden.shape[0], -1, self._size)
        self._turn(keys_values[:, : self._kv_heads], None if norm is None else norm[heads:], cos, sin)
        if not keep:
            if batch.pool is not None:
                batch.pool.store(layer.number, batch.slots, keys_values)
            return None
        if len(keep) < hidden.shape[0]:
            kept = torch.tensor(keep)
            normed, hidden, cos, sin = (each.index_select(0, kept) for each in (normed, hidden, cos, sin))
        query = queries.of(normed).view(len(keep), -1, self._size)
        self._turn(query, None if norm is None else norm[:heads], cos, sin)
        found = attend_drawing(batch, layer.number, query, keys_values, layer.scaling, layer.window, None)
        return self._forwarded(layer, hidden, found)

    def _forwarded(self, layer: _Layer, hidden: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
        """What follows attention in a layer."""
        hidden = layer.out.added_to(hidden, found.reshape(hidden.shape[0], -1))
        gate, up = layer.gate_up.of(self._normed(hidden, layer.after)).chunk(2, dim=-1)
        return layer.down.added_to(hidden, self._act(gate) * up)

    def _normed(self, hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """The root mean square's norm, in fewer operations than torch's own takes on a CPU."""
        return torch.mul(hidden, self._scale(hidden)).mul_(weight)

    def _scale(self, hidden: torch.Tensor) -> torch.Tensor:
        length = torch.linalg.vector_norm(hidden, dim=-1, keepdim=True)
        return torch.addcmul(self._eps, length, length, value=1 / hidden.shape[-1]).rsqrt_()

    def _turn(self, heads: torch.Tensor, norm: torch.Tensor | None, cos: torch.Tensor, sin: torch.Tensor) -> None:
        """Norm heads, where the architecture does, and turn them by their positions, in their place."""
        if norm is not None:
            heads.mul_(self._scale(heads)).mul_(norm)
        half = self._size // 2
        swapped = torch.cat((heads[..., half:], heads[..., :half]), dim=-1)
        heads.mul_(cos).addcmul_(swapped, sin)


def lean_decoder(
    model: torch.nn.Module, architecture: str, heads: int, kv_heads: int, head_size: int
) -> LeanDecoder | None:
    """A lean decoder for a model, where there is one."""
    parameter = next(model.parameters())
    if architecture not in LEAN or parameter.device.type != "cpu" or parameter.dtype != torch.float32:
        return None
    layers = model.model.layers  # type: ignore[union-attr]
    if any(layer.mlp.gate_proj.bias is not None for layer in layers):  # type: ignore[union-attr]
        return None
    return LeanDecoder(model, heads, kv_heads, head_size)


def _join(layer: Any) -> dict[str, torch.Tensor]:
    """The weights of a layer's products. Those that are joined become the model's too."""
    attention, forward = layer.self_attn, layer.mlp
    projections = (attention.q_proj, attention.k_proj, attention.v_proj)
    return {
        "qkv": _joined(projections),
        "out": attention.o_proj.weight,
        "gate_up": _joined((forward.gate_proj, forward.up_proj)),
        "down": forward.down_proj.weight,
    }


def _layer_of(number: int, layer: Any, joined: dict[str, torch.Tensor], parted_at: int, *, is_packed: bool) -> _Layer:
    """`parted_at`: so many outputs of the first product are one by themselves; 0: there is one for all."""
    attention = layer.self_attn
    projections = (attention.q_proj, attention.k_proj, attention.v_proj)
    biases = [each.bias for each in projections]
    bias = None if any(each is None for each in biases) else torch.cat(biases)
    parts = (slice(parted_at), slice(parted_at, None)) if parted_at else (slice(None),)
    heads_norm = None
    if (query_norm := getattr(attention, "q_norm", None)) is not None:
        kinds = ((attention.q_proj, query_norm), (attention.k_proj, attention.k_norm))
        heads_norm = torch.cat(
            [norm.weight.expand(projection.out_features // norm.weight.shape[0], -1) for projection, norm in kinds]
        )
    return _Layer(
        number=number,
        before=layer.input_layernorm.weight,
        after=layer.post_attention_layernorm.weight,
        qkv=tuple(
            product(joined["qkv"][part], None if bias is None else bias[part], is_packed=is_packed) for part in parts
        ),
        heads_norm=heads_norm,
        out=product(joined["out"], attention.o_proj.bias, is_packed=is_packed),
        gate_up=product(joined["gate_up"], is_packed=is_packed),
        down=product(joined["down"], is_packed=is_packed),
        scaling=attention.scaling,
        window=_window_of(attention),
    )


def _window_of(attention: Any) -> int | None:
    """Of a layer, or, with Mistral, of the whole model."""
    if hasattr(attention, "sliding_window"):
        own: int | None = attention.sliding_window
        return own
    window: int | None = getattr(attention.config, "sliding_window", None)
    return window if attention.config.model_type == "mistral" else None


def _joined(projections: tuple[Any, ...]) -> torch.Tensor:
    """One tensor for several layers' weights, which become views of it: no weight is in memory twice."""
    joined = torch.cat([each.weight for each in projections])
    first = 0
    for each in projections:
        last = first + each.weight.shape[0]
        each.weight = torch.nn.Parameter(joined[first:last], requires_grad=False)
        first = last
    return joined
