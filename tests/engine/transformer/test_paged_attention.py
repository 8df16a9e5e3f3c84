"""What attention layers call, against plain attention of each sequence alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pilotlight_engine.scheduling.token_sequence import StepPlan, StepSpan, TokenSequence
from pilotlight_engine.transformer import row_attention
from pilotlight_engine.transformer.decode_rows import DecodeRows, slots_of
from pilotlight_engine.transformer.kv_pool import KvPool
from pilotlight_engine.transformer.paged_attention import KEYWORD, paged_attention
from pilotlight_engine.transformer.step_batch import batch_of
from tests.engine.generations import request

CPU = torch.device("cpu")
HEADS, KV_HEADS, SIZE, PAGE = 4, 2, 8, 4
LAYER: Any = SimpleNamespace(layer_idx=0)


def _plain(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, window: int | None, softcap: float | None
) -> torch.Tensor:
    """`[heads, tokens, size]`; the queries are those of the last tokens."""
    keys, values = keys.repeat_interleave(HEADS // KV_HEADS, 0), values.repeat_interleave(HEADS // KV_HEADS, 0)
    scores = query @ keys.transpose(1, 2) * 0.3
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    at = torch.arange(keys.shape[1])[None]
    here = torch.arange(keys.shape[1] - query.shape[1], keys.shape[1])[:, None]
    hidden = (at > here) if window is None else (at > here) | (at <= here - window)
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ values


@pytest.mark.parametrize("least_heads", [1, 1000])
@pytest.mark.parametrize("softcap", [None, 0.5])
@pytest.mark.parametrize("window", [None, 1, 5, 100])
@torch.inference_mode()
def test_each_sequence_attends_to_its_own_tokens(
    window: int | None, softcap: float | None, least_heads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole prompt, a chunk, a decode that is too long for a row, and two in rows, in one step."""
    monkeypatch.setattr(row_attention, "LEAST_HEADS", least_heads)
    torch.manual_seed(0)
    shape = {"kv_heads": KV_HEADS, "head_size": SIZE, "dtype": torch.float32, "device": CPU}
    pool = KvPool(layers=1, tokens=1024, **shape)  # type: ignore[arg-type]
    rows = DecodeRows(layers=1, max_tokens=200, **shape)  # type: ignore[arg-type]
    spans, keys, values = [], [], []
    for number, (start, end) in enumerate(((0, 7), (6, 13), (150, 151), (9, 10), (3, 4))):
        sequence = TokenSequence(request=request(str(number)), arrival=0, root=b"", tokens=[1] * end)
        sequence.blocks = list(range(number * 40 + 39, number * 40 - 1, -1))
        keys.append(torch.randn(end, KV_HEADS, SIZE))
        values.append(torch.randn(end, KV_HEADS, SIZE))
        if start:
            before = torch.cat((keys[-1][:start], values[-1][:start]), dim=1)
            pool.store(0, slots_of(sequence, start, PAGE), before)
        spans.append(StepSpan(sequence=sequence, start=start, end=end))
    batch = batch_of(StepPlan(prefills=tuple(spans[:2]), decodes=tuple(spans[2:])), pool, rows, PAGE, CPU)
    order = [spans.index(span) for span in batch.order]
    new_keys = torch.cat([keys[n][spans[n].start :] for n in order])
    new_values = torch.cat([values[n][spans[n].start :] for n in order])
    query = torch.randn(HEADS, new_keys.shape[0], SIZE)
    others: dict[str, Any] = {KEYWORD: batch}
    out, _ = paged_attention(
        LAYER,
        query[None],
        new_keys.transpose(0, 1)[None],
        new_values.transpose(0, 1)[None],
        scaling=0.3,
        sliding_window=window,
        softcap=softcap,
        **others,
    )

    assert len(batch.parts) == 3
    first = 0
    for number in order:
        last = first + spans[number].end - spans[number].start
        own = _plain(
            query[:, first:last], keys[number].transpose(0, 1), values[number].transpose(0, 1), window, softcap
        )
        assert torch.allclose(out[0, first:last], own.transpose(0, 1), atol=1e-5)
        first = last
    stored, _ = pool.read(0, slots_of(spans[3].sequence, 10, PAGE))
    assert torch.equal(stored, keys[3].transpose(0, 1))
