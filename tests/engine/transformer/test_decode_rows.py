"""Rows of decoding sequences."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from pilotlight_engine.scheduling.token_sequence import StepSpan, TokenSequence
from pilotlight_engine.transformer import decode_rows
from pilotlight_engine.transformer.decode_rows import DecodeRows, slots_of
from pilotlight_engine.transformer.kv_pool import KvPool
from tests.engine.generations import request

PAGE = 4
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    """As within a step."""
    with torch.inference_mode():
        yield


def rows(max_tokens: int = 100_000) -> DecodeRows:
    """For two layers."""
    return DecodeRows(layers=2, max_tokens=max_tokens, kv_heads=2, head_size=3, dtype=torch.float32, device=CPU)


def pool(blocks: int = 100) -> KvPool:
    """Each slot holds its own number, layers and values by thousands more."""
    made = KvPool(layers=2, tokens=blocks * PAGE, kv_heads=2, head_size=3, dtype=torch.float32, device=CPU)
    numbers = torch.arange(blocks * PAGE, dtype=torch.float32)[:, None, None].expand(-1, 2, 3)
    for layer in range(2):
        made.keys[layer].copy_(numbers + 1000 * layer)
        made.values[layer].copy_(numbers + 1000 * layer + 5000)
    return made


def sequence(name: str, length: int, first_block: int) -> TokenSequence:
    """With its blocks in falling order, and one token to compute."""
    count = -(-length // PAGE)
    made = TokenSequence(request=request(name), arrival=0, root=b"", tokens=[1] * length, computed=length - 1)
    made.blocks = list(range(first_block + count - 1, first_block - 1, -1))
    return made


def span(made: TokenSequence) -> StepSpan:
    """Of its last token."""
    return StepSpan(sequence=made, start=made.computed, end=made.computed + 1)


def check(made: DecodeRows, placed: list[StepSpan]) -> None:
    """Every row holds what the blocks of its sequence do."""
    for place, each in enumerate(placed):
        expected = slots_of(each.sequence, each.start, PAGE).float()
        for layer in range(2):
            assert torch.equal(made.keys[layer][place, 1, : each.start, 2], expected + 1000 * layer)
            assert torch.equal(made.values[layer][place, 0, : each.start, 0], expected + 1000 * layer + 5000)


def test_slots_follow_the_blocks() -> None:
    """Whatever their order."""
    assert slots_of(sequence("a", 6, 10), 6, PAGE).tolist() == [44, 45, 46, 47, 40, 41]


def test_a_row_holds_what_the_blocks_do_and_stays_dense() -> None:
    """When sequences come and go."""
    made, stored = rows(), pool()
    sequences = [sequence(str(number), 5 + number, 4 * number) for number in range(5)]
    placed, without = made.arrange([span(each) for each in sequences], stored, PAGE)
    assert without == []
    check(made, placed)

    left = [each for each in sequences if each.id in ("1", "4", "2")]
    for each in left:
        each.tokens.append(1)
        each.computed += 1
        _fill(made, [each.sequence for each in placed].index(each), each)
    placed, _ = made.arrange([span(each) for each in left], stored, PAGE)

    assert sorted(each.sequence.id for each in placed) == ["1", "2", "4"]
    check(made, placed)


def _fill(made: DecodeRows, place: int, each: TokenSequence) -> None:
    """What attention does: the row gets the token that was computed."""
    slot = int(slots_of(each, each.computed, PAGE)[-1])
    for layer in range(2):
        made.keys[layer][place, :, each.computed - 1] = slot + 1000 * layer
        made.values[layer][place, :, each.computed - 1] = slot + 1000 * layer + 5000


def test_a_row_that_missed_a_token_is_read_anew() -> None:
    """As after a step that failed, or a preemption."""
    made, stored = rows(), pool()
    one = sequence("a", 9, 0)
    made.arrange([span(one)], stored, PAGE)
    made.keys[0].fill_(-1)  # the step failed: the row is one token ahead of its sequence
    placed, _ = made.arrange([span(one)], stored, PAGE)

    check(made, placed)


def test_what_is_much_longer_has_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """All others would be padded to it."""
    monkeypatch.setattr(decode_rows, "FEW_TOKENS", 10)
    made, stored = rows(), pool()
    short = [sequence(str(number), 5, 2 * number) for number in range(8)]
    long = sequence("long", 100, 40)
    placed, without = made.arrange([span(each) for each in (long, *short)], stored, PAGE)

    assert [each.sequence.id for each in without] == ["long"]
    assert len(placed) == 8


def test_rows_take_no_more_room_than_they_may() -> None:
    """Those that find none are without, the longest first; so is one that cannot grow."""
    made, stored = rows(max_tokens=128), pool()
    sequences = [sequence(str(number), 61 + number, 20 * number) for number in range(3)]
    placed, without = made.arrange([span(each) for each in sequences], stored, PAGE)
    assert [each.sequence.id for each in placed] == ["0", "1"]
    assert [each.sequence.id for each in without] == ["2"]

    for _ in range(3):
        for each in sequences:
            each.tokens.append(1)
            each.computed += 1
        placed, without = made.arrange([span(each) for each in sequences], stored, PAGE)

    assert {each.sequence.id for each in placed} == {"0"}
    assert made.both[0].numel() == 128 * 2 * 2 * 3


def test_a_wiped_row_leaves_nothing() -> None:
    """Nobody multiplies by what is no number."""
    made, stored = rows(), pool()
    one = sequence("a", 9, 0)
    made.arrange([span(one)], stored, PAGE)
    made.values[0].fill_(float("nan"))
    made.clear(one)
    made.clear(sequence("unknown", 3, 0))

    assert not made.values[0][0].any()


def test_all_room_can_be_given_back() -> None:
    """And is taken again."""
    made, stored = rows(), pool()
    one = sequence("a", 9, 0)
    made.arrange([span(one)], stored, PAGE)
    made.drop_all()
    assert made.keys[0].numel() == 0

    placed, _ = made.arrange([span(one)], stored, PAGE)
    check(made, placed)
