"""What counts as a failure of a version."""

from __future__ import annotations

from pilotlight_core.model.errors import CODES
from pilotlight_gateway.judging.failures import DEADLY, MOST_REMEMBERED, OF_VERSION, is_repeated


def test_the_callers_mistakes_are_nobodys_failure() -> None:
    """Only codes of the function itself count, and those are codes that there are."""
    assert set(CODES) >= OF_VERSION
    assert OF_VERSION >= DEADLY
    assert not {"bad_input", "cancelled", "rate_limited", "internal", "preempted", "queue_full"} & OF_VERSION


def test_what_was_seen_is_remembered_for_a_while() -> None:
    """The last ones."""
    seen: dict[str, float] = {}
    assert [is_repeated(seen, "a"), is_repeated(seen, "a")] == [False, True]
    for number in range(MOST_REMEMBERED):
        is_repeated(seen, str(number))

    assert len(seen) == MOST_REMEMBERED
    assert "a" not in seen
