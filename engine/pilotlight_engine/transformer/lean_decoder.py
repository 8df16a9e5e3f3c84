"""One token for each row, by the layers' weights without the layers' modules: what most steps on a CPU are.

With small models half of a decode's time goes into calls of modules and small operations between the matrix products.
Here one product makes queries, keys and values, another both halves of the feed-forward part, and additions ride along
with products. It computes what the modules compute, in the same precision, for the architectures of LEAN; adapters,
other precisions, prompts and other architectures go through the model itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear, rms_norm

from pilotlight_engine.transformer.paged_attention import attend_rows
from pilotlight_engine.transformer.step_batch import StepBatch

LEAN = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Layer:
    number: int
    before: torch.Tensor
    after: torch.Tensor
    """The two norms' weights."""
    qkv: torch.Tensor
    qkv_bias: torch.Tensor | None
    heads_norm: torch.Tensor | None
    """Of queries and keys, `[heads + kv_heads, size]`, where the architecture has it."""
    out: torch.Tensor
    out_bias: torch.Tensor | None
    gate_up: torch.Tensor
    down: torch.Tensor
    scaling: float
    window: int | None


class LeanDecoder:
    """The model's own weights: those that are joined become parts of one tensor, of which the model has views."""

    def __init__(self, model: Any, heads: int, kv_heads: int, head_size: int) -> None:
        base = model.model
        self._heads, self._kv_heads, self._size = heads, kv_heads, head_size
        self._embed: Callable[[torch.Tensor], torch.Tensor] = base.embed_tokens
        self._rotary: Callable[..., tuple[torch.Tensor, torch.Tensor]] = base.rotary_emb
        self._layers = [_joined(number, layer) for number, layer in enumerate(base.layers)]
        self._act: Callable[[torch.Tensor], torch.Tensor] = base.layers[0].mlp.act_fn
        self._norm, self._eps = base.norm.weight, base.norm.variance_epsilon
        self._head = model.lm_head.weight

    def logits(self, batch: StepBatch) -> torch.Tensor:
        """Those of every row, `[rows, vocabulary]`."""
        hidden = self._embed(batch.ids)
        cos, sin = self._rotary(hidden, position_ids=batch.positions)
        half = self._size // 2
        # With the sign here, turning by half needs no negation in each layer.
        turned = torch.cat((-sin[0, :, :half], sin[0, :, half:]), dim=-1)[:, None]
        cos, hidden = cos[0][:, None], hidden[0]
        for layer in self._layers:
            hidden = self._forward(layer, batch, hidden, cos, turned)
        return linear(rms_norm(hidden, self._norm.shape, self._norm, self._eps), self._head)

    def _forward(
        self, layer: _Layer, batch: StepBatch, hidden: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> torch.Tensor:
        count, half = hidden.shape[0], self._size // 2
        normed = rms_norm(hidden, layer.before.shape, layer.before, self._eps)
        joined = linear(normed, layer.qkv, layer.qkv_bias).view(count, -1, self._size)
        turning, values = joined[:, : -self._kv_heads], joined[:, -self._kv_heads :]
        if layer.heads_norm is not None:
            turning = rms_norm(turning, (self._size,), None, self._eps) * layer.heads_norm
        swapped = torch.cat((turning[..., half:], turning[..., :half]), dim=-1)
        turning = torch.addcmul(turning * cos, swapped, sin)
        query, keys = turning[:, : self._heads], turning[:, self._heads :]
        if batch.pool is not None:
            batch.pool.store(layer.number, batch.slots, keys, values)
        found = attend_rows(batch, layer.number, query, keys, values, layer.scaling, layer.window, None)
        hidden = _added(hidden, found.reshape(count, -1), layer.out, layer.out_bias)
        normed = rms_norm(hidden, layer.after.shape, layer.after, self._eps)
        gate, up = linear(normed, layer.gate_up).chunk(2, dim=-1)
        return _added(hidden, self._act(gate) * up, layer.down, None)


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


def _joined(number: int, layer: Any) -> _Layer:
    attention, forward = layer.self_attn, layer.mlp
    projections = (attention.q_proj, attention.k_proj, attention.v_proj)
    biases = [each.bias for each in projections]
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
        qkv=_join(projections),
        qkv_bias=None if any(bias is None for bias in biases) else torch.cat(biases),
        heads_norm=heads_norm,
        out=attention.o_proj.weight,
        out_bias=attention.o_proj.bias,
        gate_up=_join((forward.gate_proj, forward.up_proj)),
        down=forward.down_proj.weight,
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


def _join(projections: tuple[Any, ...]) -> torch.Tensor:
    """One tensor for several layers' weights, which become views of it: no weight is in memory twice."""
    joined = torch.cat([each.weight for each in projections])
    first = 0
    for each in projections:
        last = first + each.weight.shape[0]
        each.weight = torch.nn.Parameter(joined[first:last], requires_grad=False)
        first = last
    return joined


def _added(hidden: torch.Tensor, inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    found = torch.addmm(hidden, inputs, weight.T)
    return found if bias is None else found + bias
