"""What a container likely has in memory of the calls it was given."""

from __future__ import annotations

from pilotlight_core.model.messages.call_affinity import CallAffinity
from pilotlight_gateway.home.recent_affinities import ADAPTERS_AT_MOST, PREFIXES_AT_MOST, RecentAffinities


def test_the_longest_common_beginning_counts() -> None:
    """Blocks behind the first that differs are no beginning."""
    recent = RecentAffinities()
    recent.note(CallAffinity("", (1, 2, 3)))
    recent.note(CallAffinity("", (1, 9, 4)))
    assert recent.worth(CallAffinity("", (1, 2, 3, 7))) == (False, 3)
    assert recent.worth(CallAffinity("", (1, 9, 3))) == (False, 3), "each digest covers all before it"
    assert recent.worth(CallAffinity("", (8, 2, 3))) == (False, 0)


def test_adapters_are_told_apart() -> None:
    """One that was never given says no."""
    recent = RecentAffinities()
    recent.note(CallAffinity("a"))
    assert recent.worth(CallAffinity("a"))[0]
    assert not recent.worth(CallAffinity("b"))[0]


def test_what_is_remembered_is_bounded() -> None:
    """What was used last stays."""
    recent = RecentAffinities()
    for number in range(PREFIXES_AT_MOST + 10):
        recent.note(CallAffinity("kept", (-1, number)))
    for number in range(ADAPTERS_AT_MOST - 1):
        recent.note(CallAffinity(f"a{number}"))
    assert recent.worth(CallAffinity("kept", (-1, PREFIXES_AT_MOST + 9))) == (True, 2)
    assert recent.worth(CallAffinity("kept", (-1, 0))) == (True, 1)
    recent.note(CallAffinity("one more"))
    assert not recent.worth(CallAffinity("kept"))[0]
