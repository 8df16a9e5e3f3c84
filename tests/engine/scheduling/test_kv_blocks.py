"""The room for keys and values."""

from __future__ import annotations

import random

import pytest

from pilotlight_engine.scheduling.kv_blocks import KvBlocks


def test_blocks_are_taken_all_or_none() -> None:
    """Nothing is held where there is not enough."""
    blocks = KvBlocks(3, 16)
    taken = blocks.take(2)

    assert taken is not None
    assert blocks.take(2) is None
    assert (blocks.held, blocks.available) == (2, 1)

    blocks.release(taken)

    assert blocks.available == 3


def test_tokens_need_whole_blocks() -> None:
    """The last one may be almost empty."""
    assert [KvBlocks(1, 16).count_for(tokens) for tokens in (0, 1, 16, 17)] == [0, 1, 1, 2]


def test_a_named_block_is_found_until_its_room_is_needed() -> None:
    """The one that was let go first is overwritten first, and of a chain the end before the beginning."""
    blocks = KvBlocks(3, 16)
    chain = blocks.take(2)
    assert chain is not None
    blocks.publish(chain[0], b"first")
    blocks.publish(chain[1], b"second")
    blocks.release(chain)

    assert blocks.find([b"first", b"second", b"third"]) == chain

    assert blocks.take(2) is not None  # the empty one, and the end of the chain
    assert blocks.find([b"first", b"second"]) == chain[:1]

    assert blocks.take(1) is not None
    assert blocks.find([b"first"]) == []


def test_a_shared_block_is_free_when_its_last_holder_lets_go() -> None:
    """However many there were."""
    blocks = KvBlocks(1, 16)
    taken = blocks.take(1)
    assert taken is not None
    blocks.publish(taken[0], b"name")
    blocks.share(taken)
    blocks.release(taken)

    assert blocks.take(1) is None

    blocks.release(taken)

    assert blocks.unheld_among(taken) == 1
    assert blocks.take(1) == taken


def test_of_two_blocks_with_one_content_one_has_the_name() -> None:
    """The other is empty once it is let go."""
    blocks = KvBlocks(2, 16)
    taken = blocks.take(2)
    assert taken is not None
    for block in taken:
        blocks.publish(block, b"name")
    blocks.release(taken)

    assert blocks.find([b"name"]) == taken[:1]
    blocks.check_integrity()


def test_what_is_hidden_is_not_found() -> None:
    """Its blocks are as empty ones once they are let go."""
    blocks = KvBlocks(2, 16)
    taken = blocks.take(2)
    assert taken is not None
    blocks.publish(taken[0], b"name")
    blocks.hide(taken)
    assert blocks.find([b"name"]) == []
    blocks.release(taken)

    assert blocks.unheld_among(taken) == 0
    blocks.check_integrity()


def test_names_can_all_be_forgotten() -> None:
    """As when what is stored is gone."""
    blocks = KvBlocks(2, 16)
    taken = blocks.take(2)
    assert taken is not None
    blocks.publish(taken[0], b"kept")
    blocks.publish(taken[1], b"held")
    blocks.release(taken[:1])
    blocks.forget_names()

    assert blocks.find([b"kept"]) == blocks.find([b"held"]) == []
    assert blocks.available == 1
    blocks.check_integrity()


def test_no_block_is_lost_whatever_happens() -> None:
    """A thousand random steps."""
    chance = random.Random(7)
    blocks = KvBlocks(20, 4)
    held: list[list[int]] = []
    for number in range(1000):
        if held and chance.random() < 0.5:
            blocks.release(held.pop(chance.randrange(len(held))))
        elif (taken := blocks.take(chance.randrange(4))) is not None:
            held.append(taken)
            for block in taken:
                blocks.publish(block, bytes([chance.randrange(8)]))
        elif found := blocks.find([bytes([number % 8])]):
            blocks.share(found)
            held.append(found)
        blocks.check_integrity()

    for each in held:
        blocks.release(each)

    assert blocks.available == 20


@pytest.mark.parametrize(("count", "page"), [(0, 16), (1, 0)])
def test_there_is_at_least_one_token_s_room(count: int, page: int) -> None:
    """An engine without any is a mistake of whoever made it."""
    with pytest.raises(ValueError, match="at least 1"):
        KvBlocks(count, page)


def test_a_block_that_is_counted_twice_is_noticed() -> None:
    """As is a name that nobody finds."""
    blocks = KvBlocks(2, 16)
    taken = blocks.take(1)
    assert taken is not None
    blocks._empty.append(taken[0])
    with pytest.raises(AssertionError, match="free"):
        blocks.check_integrity()
    blocks._empty.pop()
    blocks._names[taken[0]] = b"name"
    with pytest.raises(AssertionError, match="agree"):
        blocks.check_integrity()
