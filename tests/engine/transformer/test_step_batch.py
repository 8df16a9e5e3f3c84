"""The tensors of a plan."""

from __future__ import annotations

import torch

from pilotlight_engine.scheduling.token_sequence import StepPlan, StepSpan, TokenSequence
from pilotlight_engine.transformer.decode_rows import DecodeRows
from pilotlight_engine.transformer.kv_pool import KvPool
from pilotlight_engine.transformer.step_batch import batch_of, batch_of_whole
from tests.engine.generations import request

CPU = torch.device("cpu")
SHAPE = {"kv_heads": 1, "head_size": 2, "dtype": torch.float32, "device": CPU}


def _sequence(name: str, tokens: list[int], blocks: list[int]) -> TokenSequence:
    made = TokenSequence(request=request(name), arrival=0, root=b"", tokens=tokens)
    made.blocks = blocks
    return made


def test_prompts_come_first_then_decodes_without_a_row_then_those_with_one() -> None:
    """With their positions, and where each is stored."""
    rows = DecodeRows(layers=1, max_tokens=64, **SHAPE)  # type: ignore[arg-type]
    pool = KvPool(layers=1, tokens=1024, **SHAPE)  # type: ignore[arg-type]
    first = StepSpan(sequence=_sequence("first", [10, 11, 12], [9]), start=0, end=3)
    chunk = StepSpan(sequence=_sequence("chunk", list(range(20, 30)), [3, 1, 2]), start=3, end=6)
    row = StepSpan(sequence=_sequence("row", [30, 31], [4]), start=1, end=2)
    long = StepSpan(sequence=_sequence("long", list(range(100, 180)), list(range(10, 30))), start=79, end=80)
    batch = batch_of(StepPlan(prefills=(first, chunk), decodes=(row, long)), pool, rows, 4, CPU)

    assert [span.sequence.id for span in batch.order] == ["first", "chunk", "long", "row"]
    assert batch.ids.tolist() == [[10, 11, 12, 23, 24, 25, 179, 31]]
    assert batch.positions.tolist() == [[0, 1, 2, 3, 4, 5, 79, 1]]
    assert batch.slots.tolist() == [36, 37, 38, 15, 4, 5, 119, 17]
    assert [(part.first, part.last, part.start, part.end) for part in batch.parts] == [
        (0, 3, 0, 3), (3, 6, 3, 6), (6, 7, 79, 80),
    ]  # fmt: skip
    assert batch.parts[0].slots is None
    assert batch.parts[1].slots is not None
    assert batch.parts[1].slots.tolist() == [12, 13, 14, 15, 4, 5]
    places, drawing = batch.drawing()
    assert [(place, span.sequence.id) for place, span in zip(places, drawing, strict=True)] == [
        (2, "first"), (6, "long"), (7, "row"),
    ]  # fmt: skip
    assert (batch.rows_first, batch.row_length) == (7, 2)
    assert batch.row_slots.tolist() == [1, 65]  # keys, and values
    assert [part.draws for part in batch.parts] == [True, False, True]
    assert batch.longest == 80


def test_a_row_sees_itself_and_what_is_before_within_the_window() -> None:
    """The mask is made once for each window."""
    rows = DecodeRows(layers=1, max_tokens=1024, **SHAPE)  # type: ignore[arg-type]
    pool = KvPool(layers=1, tokens=64, **SHAPE)  # type: ignore[arg-type]
    decodes = tuple(
        StepSpan(sequence=_sequence(str(length), [1] * length, [0, 1]), start=length - 1, end=length)
        for length in (2, 5)
    )
    batch = batch_of(StepPlan(prefills=(), decodes=decodes), pool, rows, 4, CPU)
    seen = [[[0.0] * 2 + [1.0] * 3], [[0.0] * 5]]
    windowed = [[[0.0] * 2 + [1.0] * 3], [[1.0] * 3 + [0.0] * 2]]

    assert batch.drawing() == ([0, 1], list(batch.order))
    assert torch.isinf(batch.row_mask(None)).float().tolist() == seen
    assert torch.isinf(batch.row_mask(2)).float().tolist() == windowed
    assert batch.row_mask(2) is batch.row_mask(2)


def test_whole_sequences_store_nothing() -> None:
    """They only stand beside each other."""
    batch = batch_of_whole([[1, 2], [3]], CPU)

    assert batch.ids.tolist() == [[1, 2, 3]]
    assert batch.positions.tolist() == [[0, 1, 0]]
    assert batch.pool is None
    assert [(part.first, part.last) for part in batch.parts] == [(0, 2), (2, 3)]
