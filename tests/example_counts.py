"""How many examples a property is held against."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

FEWER = 3


def examples(most: int, **others: Any) -> settings:
    """The settings of a property test that finds what is rare within `most` examples."""
    return settings(max_examples=most if settings.get_current_profile_name() == "seeded" else judged(most), **others)


def judged(most: int) -> int:
    """By how many of them a change is judged, the same ones each time; `make test-seeds` takes all, and new ones."""
    return -(-most // FEWER)
