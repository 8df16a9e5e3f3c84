"""What a model's attention layers call: it stores keys and values, and attends within each sequence of a step.

It is registered with transformers by name; the engine passes its `StepBatch` through the model as a keyword. Parts of
prompts attend one by one. Decodes with a row attend all at once: heads that share keys are taken for queries of one
head, so that nothing is repeated in memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface

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
    keys, values = key[0].transpose(0, 1), value[0].transpose(0, 1)  # [tokens, kv_heads, size]
    if batch.pool is not None:
        batch.pool.store(layer, batch.slots, keys, values)
    if batch.rows is not None and not batch.parts:
        found = attend_rows(batch, layer, query[0].transpose(0, 1), keys, values, scaling, sliding_window, softcap)
        return found[None], None
    out = torch.empty_like(query[0].transpose(0, 1))
    for part in batch.parts:
        here = slice(part.first, part.last)
        if batch.pool is None or part.slots is None:
            stored_keys, stored_values = key[0, :, here], value[0, :, here]
        else:
            stored_keys, stored_values = batch.pool.read(layer, part.slots)
        found = _attend_part(part, query[0, :, here], stored_keys, stored_values, scaling, sliding_window, softcap)
        out[here] = found.transpose(0, 1)
    if batch.rows is not None:
        first = batch.rows_first
        own = query[0, :, first:].transpose(0, 1)
        out[first:] = attend_rows(batch, layer, own, keys[first:], values[first:], scaling, sliding_window, softcap)
    return out[None], None


def attend_rows(
    batch: StepBatch,
    layer: int,
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scaling: float,
    window: int | None,
    softcap: float | None,
) -> torch.Tensor:
    """One token for each row: `[rows, heads, size]`, as what comes of it."""
    assert batch.rows is not None  # noqa: S101 - only called where there are rows
    row_keys, row_values = batch.rows.keys[layer], batch.rows.values[layer]
    count, heads, size = query.shape
    kv_heads = keys.shape[1]
    row_keys.view(-1, size).index_copy_(0, batch.row_slots, keys.reshape(-1, size))
    row_values.view(-1, size).index_copy_(0, batch.row_slots, values.reshape(-1, size))
    grouped = query.reshape(count, kv_heads, heads // kv_heads, size)
    seen_keys, seen_values = row_keys[:count, :, : batch.row_length], row_values[:count, :, : batch.row_length]
    mask = batch.row_mask(window)
    if softcap is not None:
        return _capped(grouped, seen_keys, seen_values, mask, scaling, softcap).reshape(count, heads, size)
    found = scaled_dot_product_attention(grouped, seen_keys, seen_values, attn_mask=mask, scale=scaling)
    return found.reshape(count, heads, size)


def _attend_part(
    part: PromptPart,
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scaling: float,
    window: int | None,
    softcap: float | None,
) -> torch.Tensor:
    """A part of one sequence, all in `[heads, tokens, size]`."""
    if window is not None and part.start >= window:  # what no token of the part sees
        first = part.start - window + 1
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
        return _capped(query, keys, values, added, scaling, softcap)
    return scaled_dot_product_attention(
        query[None], keys[None], values[None], attn_mask=mask, scale=scaling, enable_gqa=True
    )[0]


def _capped(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float,
    softcap: float,
) -> torch.Tensor:
    """Attention whose scores are bent to stay below `softcap`, as Gemma 2 has it."""
    scores = torch.tanh(query @ keys.transpose(-1, -2) * scaling / softcap) * softcap
    if mask is not None:
        scores = scores + mask
    return torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype) @ values


def _no_mask(*_: Any, **__: Any) -> None:
    return None
