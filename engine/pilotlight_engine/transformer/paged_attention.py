"""What a model's attention layers call: it stores keys and values, and attends within each sequence of a step.

It is registered with transformers by name; the engine passes its `StepBatch` through the model as a keyword. Parts of
prompts attend one by one, decodes with a row all at once (`row_attention.py`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface

from pilotlight_engine.transformer.row_attention import attend_rows, capped
from pilotlight_engine.transformer.step_batch import PromptPart, StepBatch

NAME = "pilotlight_paged"
KEYWORD = "pilotlight_batch"


def register_attention() -> None:
    """Make the attention known to transformers, under NAME. It needs no mask of transformers'."""
    AttentionInterface.register(NAME, paged_attention)
    AttentionMaskInterface.register(NAME, _no_mask)


def paged_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None = None,  # noqa: ARG001 - transformers' parameter
    *,
    scaling: float,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of one layer: `[1, heads, tokens, size]` in, `[1, tokens, heads, size]` out."""
    batch: StepBatch = others[KEYWORD]
    layer: int = module.layer_idx  # type: ignore[assignment]
    keys_values = torch.cat((key[0], value[0])).transpose(0, 1)
    found = attend(batch, layer, query[0].transpose(0, 1), keys_values, scaling, sliding_window, softcap)
    return found[None], None


def attend(
    batch: StepBatch,
    layer: int,
    query: torch.Tensor,
    keys_values: torch.Tensor,
    scaling: float,
    window: int | None,
    softcap: float | None,
) -> torch.Tensor:
    """All tokens of a step: `[tokens, heads, size]`, as what comes of it, with `[tokens, 2 * kv_heads, size]`."""
    if batch.pool is not None:
        batch.pool.store(layer, batch.slots, keys_values)
    if not batch.parts and batch.rows is not None:
        return attend_rows(batch, layer, query, keys_values, scaling, window, softcap)
    out = query.new_empty(query.shape)
    for part in batch.parts:
        here = slice(part.first, part.last)
        keys, values = _stored(batch, part, layer, keys_values)
        found = _attend_part(part.start, query[here].transpose(0, 1), keys, values, scaling, window, softcap)
        out[here] = found.transpose(0, 1)
    if batch.rows is not None:
        first = batch.rows_first
        out[first:] = attend_rows(batch, layer, query[first:], keys_values[first:], scaling, window, softcap)
    return out


def attend_drawing(
    batch: StepBatch,
    layer: int,
    query: torch.Tensor,
    keys_values: torch.Tensor,
    scaling: float,
    window: int | None,
    softcap: float | None,
) -> torch.Tensor:
    """As `attend`, of those tokens only after which a next one is drawn: the others are stored."""
    if batch.pool is not None:
        batch.pool.store(layer, batch.slots, keys_values)
    out = query.new_empty(query.shape)
    place = 0
    for part in batch.parts:
        if part.draws:
            keys, values = _stored(batch, part, layer, keys_values)
            own = query[place : place + 1].transpose(0, 1)
            found = _attend_part(part.end - 1, own, keys, values, scaling, window, softcap)
            out[place : place + 1] = found.transpose(0, 1)
            place += 1
    if batch.rows is not None:
        own_kv = keys_values[batch.rows_first :]
        out[place:] = attend_rows(batch, layer, query[place:], own_kv, scaling, window, softcap)
    return out


def _stored(
    batch: StepBatch, part: PromptPart, layer: int, keys_values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of a part's sequence up to its end, `[kv_heads, tokens, size]`: computed now, or before too."""
    if batch.pool is not None and part.slots is not None:
        return batch.pool.read(layer, part.slots)
    own = keys_values[part.first : part.last].transpose(0, 1)
    kv_heads = own.shape[0] // 2
    return own[:kv_heads], own[kv_heads:]


def _attend_part(
    start: int,
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scaling: float,
    window: int | None,
    softcap: float | None,
) -> torch.Tensor:
    """Tokens of one sequence, from `start` up to the last one that is stored; all in `[heads, tokens, size]`."""
    if window is not None and start >= window:  # what none of them sees
        first = start - window + 1
        keys, values = keys[:, first:], values[:, first:]
    count, stored = query.shape[1], keys.shape[1]
    windowed = window is not None and stored > window
    if count == 1 and not windowed:
        mask = None
    elif count == stored and not windowed and softcap is None:
        return scaled_dot_product_attention(
            query[None], keys[None], values[None], is_causal=True, scale=scaling, enable_gqa=True
        )[0]
    else:
        mask = torch.ones((count, stored), dtype=torch.bool, device=query.device).tril_(stored - count)
        if windowed and window is not None:
            mask = mask.triu_(stored - count - window + 1)
    if softcap is not None:
        groups = query.shape[0] // keys.shape[0]
        added = None if mask is None else torch.zeros_like(mask, dtype=query.dtype).masked_fill_(~mask, float("-inf"))
        keys, values = keys.repeat_interleave(groups, 0), values.repeat_interleave(groups, 0)
        return capped(query, keys, values, added, scaling, softcap)
    return scaled_dot_product_attention(
        query[None], keys[None], values[None], attn_mask=mask, scale=scaling, enable_gqa=True
    )[0]


def _no_mask(*_: Any, **__: Any) -> None:
    return None
