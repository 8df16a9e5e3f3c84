"""Which host uid the next container gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_runtime.sandbox.host_uids import UidPool
from pilotlight_runtime.sandbox.sandbox_errors import SandboxUnavailable, UidsExhausted


def test_each_taker_gets_its_own() -> None:
    """From the first of the range on."""
    pool = UidPool(first=1000, count=3)

    assert [pool.take() for _ in range(3)] == [1000, 1001, 1002]
    assert pool.in_use() == {1000, 1001, 1002}


def test_when_all_are_taken_the_next_is_refused_until_one_comes_back() -> None:
    """The error names the range."""
    pool = UidPool(first=1000, count=1)
    uid = pool.take()

    with pytest.raises(UidsExhausted, match="all 1 host uids from 1000"):
        pool.take()

    pool.release(uid)
    assert pool.take() == 1000


def test_a_freed_one_rests_as_long_as_possible() -> None:
    """The next tenant does not meet what the last one left."""
    pool = UidPool(first=1, count=3)
    pool.release(pool.take())

    assert [pool.take(), pool.take()] == [2, 3]

    pool.release(3)
    pool.release(2)
    assert [pool.take() for _ in range(3)] == [1, 3, 2]


def test_a_second_release_is_a_bug() -> None:
    """It could give one uid to two containers."""
    pool = UidPool(first=1, count=1)
    pool.release(pool.take())

    with pytest.raises(ValueError, match="host uid 1 is not in use"):
        pool.release(1)


@pytest.mark.parametrize(("first", "count"), [(0, 1), (1, 0)])
def test_root_is_in_no_range(first: int, count: int) -> None:
    """Nor is a range empty."""
    with pytest.raises(ValueError, match="first >= 1"):
        UidPool(first=first, count=count)


def test_two_agents_never_claim_the_same_range(tmp_path: Path) -> None:
    """A closed claim is free for the next agent."""
    first = UidPool.claim(tmp_path, first=1000, count=10, blocks=2)
    second = UidPool.claim(tmp_path, first=1000, count=10, blocks=2)

    assert (first.take(), second.take()) == (1000, 1010)
    with pytest.raises(UidsExhausted, match="2 agents on this host"):
        UidPool.claim(tmp_path, first=1000, count=10, blocks=2)

    first.close()
    first.close()
    third = UidPool.claim(tmp_path, first=1000, count=10, blocks=2)
    assert third.take() == 1000
    second.close()
    third.close()


def test_a_claim_needs_a_folder(tmp_path: Path) -> None:
    """The error names it."""
    (tmp_path / "file").touch()

    with pytest.raises(SandboxUnavailable, match="needs a writable folder"):
        UidPool.claim(tmp_path / "file")
