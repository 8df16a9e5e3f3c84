"""What a process made at its start is never walked again by its garbage collector."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from pilotlight_core.host import gc_tuning


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """The collector of the test run is left as it was."""
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


class Circle:
    """Garbage that only a collection finds."""

    def __init__(self) -> None:
        self.me = self


def is_walked(thing: object) -> bool:
    """Whether a collection looks at it."""
    return any(each is thing for each in gc.get_objects())


def test_what_was_made_before_is_walked_no_more_and_garbage_is_gone_first() -> None:
    """What comes later is looked at, though seldom."""
    kept: list[object] = []
    rubbish = Circle()
    ghost = weakref.ref(rubbish)
    del rubbish
    assert is_walked(kept)

    gc_tuning.freeze()
    later: list[object] = []

    assert not is_walked(kept)
    assert is_walked(later)
    assert ghost() is None
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] == gc_tuning.YOUNG


def test_what_came_since_is_frozen_too_without_a_collection() -> None:
    """Unreachable cycles stay for now, since a collection would stop the loop."""
    gc_tuning.freeze()
    later: list[object] = []
    ghost = weakref.ref(Circle())

    gc_tuning.freeze_again()

    assert not is_walked(later)
    assert ghost() is not None


def test_what_is_new_is_looked_at_and_what_is_older_is_not() -> None:
    """So a look costs as much as has come since the last one."""
    older = Circle()
    ghost = weakref.ref(older)
    gc.collect()
    del older
    newer = weakref.ref(Circle())

    gc_tuning.collect_young()

    assert newer() is None
    assert ghost() is not None
