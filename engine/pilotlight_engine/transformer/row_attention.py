"""Attention of one token for each row of decoding sequences, all rows at once.

Heads that share keys are queries of one head, so that nothing is repeated in memory. On a CPU a step waits for keys and
values to come from memory: sums of values are those of `embedding_bag`, which asks for them ahead, and takes a fifth of
the time that a product of matrices of so few rows does.
"""

from __future__ import annotations

import torch
from torch.nn.functional import scaled_dot_product_attention

from pilotlight_engine.transformer.step_batch import StepBatch

LEAST_HEADS = 16
"""With fewer heads of all rows one operation is quicker than three."""
MOST_BYTES = 256 * 1024
"""Of one head's values of a row: with more they would come from memory again for each query that shares them."""


def attend_rows(
    batch: StepBatch,
    layer: int,
    query: torch.Tensor,
    keys_values: torch.Tensor,
    scaling: float,
    window: int | None,
    softcap: float | None,
) -> torch.Tensor:
    """Store a token's keys and values in each row, and attend: `[rows, heads, size]`, as what comes of it."""
    rows = batch.rows
    assert rows is not None  # noqa: S101 - only called where there are rows
    count, heads, size = query.shape
    rows.both[layer].view(-1, size).index_copy_(0, batch.row_slots, keys_values.reshape(-1, size))
    each, groups = count * rows.kv_heads, heads // rows.kv_heads
    grouped, mask = query.reshape(each, groups, size), batch.row_mask(window)
    keys, values = (of_layer[layer][:count].view(each, rows.length, size) for of_layer in (rows.keys, rows.values))
    keys, values = keys[:, : batch.row_length], values[:, : batch.row_length]
    if softcap is not None:
        found = capped(grouped, keys, values, mask, scaling, softcap)
    elif _is_read_in_order(query, each, batch.row_length):
        shares = torch.softmax(torch.baddbmm(mask, grouped, keys.transpose(1, 2), alpha=scaling), dim=-1)
        bags = batch.bags(groups)
        table = rows.both[layer].view(-1, size)
        found = torch.embedding_bag(table, bags.places, bags.first, per_sample_weights=shares.view(-1))[0]
    else:
        found = scaled_dot_product_attention(
            grouped[:, None], keys[:, None], values[:, None], attn_mask=mask[:, None], scale=scaling
        )
    return found.reshape(count, heads, size)


def capped(
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


def _is_read_in_order(query: torch.Tensor, heads: int, length: int) -> bool:
    if query.device.type != "cpu" or query.dtype != torch.float32 or heads < LEAST_HEADS:
        return False
    return length * query.shape[-1] * query.itemsize <= MOST_BYTES
