"""No tenant has the whole room for keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_gateway.storage_quota.quota_shares import (
    LARGEST_BLOCK,
    NOTHING,
    SLOTS,
    SMALLEST_BLOCK,
    QuotaUsage,
    block_of,
    quota_key,
    seconds_until_free,
    slot_of,
    slot_until,
    used,
    with_blocks,
)

LIFE = 240.0
SLOT = LIFE / SLOTS
MIB = 2**20


def test_what_has_expired_counts_no_more() -> None:
    """What was written at the end of a slot lives until a life after that."""
    taken = with_blocks(NOTHING, 0, {0: 90})

    assert [used(taken, slot) for slot in (0, SLOTS, SLOTS + 1)] == [90, 90, 0]
    assert with_blocks(taken, SLOTS + 1, {SLOTS + 1: 5}) == QuotaUsage({SLOTS + 1: 5})


def test_blocks_are_small_where_little_is_written() -> None:
    """They double with what the slot has seen, up to the largest; the last bytes are given to whoever needs no more."""
    taken = NOTHING
    blocks = []
    for _ in range(9):
        blocks.append(block_of(taken, 7, 400, 10 * MIB))
        taken = with_blocks(taken, 7, {7: blocks[-1]})

    assert blocks[:3] == [SMALLEST_BLOCK, SMALLEST_BLOCK, 2 * SMALLEST_BLOCK]
    assert blocks[-1] == LARGEST_BLOCK
    assert block_of(taken, 7, 3 * MIB, 10 * MIB) == 3 * MIB
    room = 10 * MIB - used(taken, 7)
    assert block_of(QuotaUsage({7: 10 * MIB - 500}), 7, 400, 10 * MIB) == 500
    assert block_of(taken, 7, room + 1, 10 * MIB) == 0


def test_the_time_to_wait_is_when_enough_has_expired() -> None:
    """Not merely something; and what would never fit waits for all of it."""
    taken, at = QuotaUsage({0: 50, 2: 40, 5: 10}), 6.5 * SLOT
    assert slot_of(at, LIFE) == 6

    waits = [seconds_until_free(taken, size, 100, at, LIFE) for size in (50, 90, 91)]

    assert waits == pytest.approx([(SLOTS + slot + 1 - 6.5) * SLOT for slot in (0, 2, 5)])
    assert seconds_until_free(taken, 0, 100, at, LIFE) == 0.0


@given(st.lists(st.tuples(st.integers(1, 60), st.floats(0.0, 60.0), st.floats(0.0, 10 * LIFE)), max_size=60))
def test_what_lives_is_counted(writes: list[tuple[int, float, float]]) -> None:
    """However long each lives: never less than what has not expired, never more than the limit."""
    taken, written, at = NOTHING, [], 0.0
    for size, pause, lives in writes:
        at += pause
        slot, into = slot_of(at, LIFE), slot_until(at + lives, LIFE)
        if block := block_of(taken, slot, size, 100, into):
            assert block >= size
            taken = with_blocks(taken, slot, {into: block})
            written.append((size, at + lives))
        alive = sum(size for size, until in written if at <= until)
        assert alive <= used(taken, slot) <= 100


@given(st.floats(0.0, 1e6), st.floats(0.0, 10 * LIFE))
def test_what_has_expired_counts_for_a_slot_at_most(at: float, lives: float) -> None:
    """So it is given back, once, whoever is there then."""
    taken = with_blocks(NOTHING, slot_of(at, LIFE), {slot_until(at + lives, LIFE): 7})

    assert used(taken, slot_of(at + lives, LIFE)) == 7
    assert used(taken, slot_of(at + lives + 1.01 * SLOT, LIFE)) == 0


def test_a_share_is_no_key() -> None:
    """Its place cannot be that of any key, which are hexadecimal digits."""
    assert quota_key("acme") != quota_key("rival")
    assert quota_key("acme").startswith("share-")
