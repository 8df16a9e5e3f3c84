"""One token for each row, read in either way."""

from __future__ import annotations

import pytest
import torch

from pilotlight_engine.scheduling.token_sequence import StepPlan, StepSpan, TokenSequence
from pilotlight_engine.transformer import row_attention
from pilotlight_engine.transformer.decode_rows import DecodeRows
from pilotlight_engine.transformer.kv_pool import KvPool
from pilotlight_engine.transformer.row_attention import attend_rows
from pilotlight_engine.transformer.step_batch import StepBatch, batch_of
from tests.engine.generations import request

CPU = torch.device("cpu")
HEADS, KV_HEADS, SIZE, PAGE = 8, 2, 16, 4


def batch(lengths: tuple[int, ...]) -> StepBatch:
    """One decode of each length, whose rows hold random numbers."""
    shape = {"kv_heads": KV_HEADS, "head_size": SIZE, "dtype": torch.float32, "device": CPU}
    pool = KvPool(layers=1, tokens=4096, **shape)  # type: ignore[arg-type]
    rows = DecodeRows(layers=1, max_tokens=8192, **shape)  # type: ignore[arg-type]
    pool.keys[0].normal_()
    pool.values[0].normal_()
    spans = []
    for number, length in enumerate(lengths):
        sequence = TokenSequence(request=request(str(number)), arrival=number, root=b"", tokens=[1] * length)
        sequence.blocks = list(range(number * 100, number * 100 + 100))
        spans.append(StepSpan(sequence=sequence, start=length - 1, end=length))
    return batch_of(StepPlan(prefills=(), decodes=tuple(spans)), pool, rows, PAGE, CPU)


@pytest.mark.parametrize("window", [None, 7])
@torch.inference_mode()
def test_values_are_summed_alike_in_either_way(window: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of many lengths, and more queries than heads of keys."""
    torch.manual_seed(0)
    made = batch((3, 40, 41, 100, 1, 17))
    query, new = torch.randn(6, HEADS, SIZE), torch.randn(6, 2 * KV_HEADS, SIZE)
    found = []
    for least in (1, 10_000):
        monkeypatch.setattr(row_attention, "LEAST_HEADS", least)
        found.append(attend_rows(made, 0, query, new, 0.3, window, None))

    assert torch.allclose(found[0], found[1], atol=1e-5)
    assert made.row_bags is not None


def test_what_is_not_read_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few heads, other precisions, and values that would be read again for each query."""
    query = torch.zeros(4, HEADS, SIZE)

    assert row_attention._is_read_in_order(query, 16, 1000)
    assert not row_attention._is_read_in_order(query, 15, 1000)
    assert not row_attention._is_read_in_order(query.bfloat16(), 16, 1000)
    monkeypatch.setattr(row_attention, "MOST_BYTES", 1000 * SIZE * 4 - 1)
    assert not row_attention._is_read_in_order(query, 16, 1000)
