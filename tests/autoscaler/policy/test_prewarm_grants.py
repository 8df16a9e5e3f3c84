"""A tenant's bound on what is warmed ahead is divided fairly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_autoscaler.policy.prewarm_grants import TURN_S, PrewarmGrants, granted

ASKED = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 9), max_size=6)


def test_who_asks_for_a_few_gets_them_whatever_others_ask_for() -> None:
    """Whatever their names are."""
    assert granted({"a": 30, "b": 2, "z": 1}, 12, 0.0) == {"a": 9, "b": 2, "z": 1}
    assert granted({"a": 1, "b": 2, "z": 30}, 12, 0.0) == {"a": 1, "b": 2, "z": 9}
    assert granted({}, 12, 0.0) == {}


def test_what_cannot_be_divided_goes_to_another_one_each_hour() -> None:
    """So each has its turn, and none is warmed and let go within minutes."""
    asked = {"a": 1, "b": 1, "c": 1}
    turns = [granted(asked, 1, hour * TURN_S) for hour in range(3)]

    assert sorted(name for turn in turns for name, count in turn.items() if count) == ["a", "b", "c"]
    assert granted(asked, 1, TURN_S - 1.0) == turns[0]


@given(ASKED, st.integers(0, 20), st.floats(0, 1e9))
def test_the_bound_is_kept_and_used_and_nobody_is_more_than_one_behind(
    asked: dict[str, int], most: int, at: float
) -> None:
    """Of those that ask for more than they got."""
    found = granted(asked, most, at)

    assert all(found[name] <= asked[name] for name in asked)
    assert sum(found.values()) == min(most, sum(asked.values()))
    short = [found[name] for name in asked if found[name] < asked[name]]
    assert not short or max(found.values()) <= min(short) + 1


def test_between_two_deals_a_function_has_what_is_left() -> None:
    """Nobody loses what it was dealt within a minute, and the bound is kept."""
    grants = PrewarmGrants(most=4)
    assert grants.ask("a", 3, 0.0) == {"a": 3}
    assert grants.ask("b", 3, 1.0) == {"b": 1}
    assert grants.ask("a", 1, 2.0) == {"a": 1}
    assert grants.ask("b", 3, 3.0) == {"b": 3}
    grants.ask("a", 3, 4.0)

    assert grants.ask("a", 3, 60.0) == {"a": 2, "b": 2}
    assert grants.ask("b", 0, 120.0) == {"a": 3, "b": 0}
    assert grants.ask("a", 0, 121.0) == {"a": 0}
    assert not grants
