"""How many examples a property is held against."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

FEWER = 5
SLOW = 12
"""Where an example takes as long as many others' tests."""


def examples(most: int, *, fewer: int = FEWER, **others: Any) -> settings:
    """The settings of a property test that finds what is rare within `most` examples."""
    is_seeded = settings.get_current_profile_name() == "seeded"
    return settings(max_examples=most if is_seeded else judged(most, fewer), **others)


def judged(most: int, fewer: int = FEWER) -> int:
    """By how many of them a change is judged, the same ones each time; `make test-seeds` takes all, and new ones."""
    return -(-most // fewer)
