"""News that cannot be told are tried later each time, for each app by itself."""

from __future__ import annotations

from pilotlight_gateway.rollouts.news_pauses import FIRST_S, MOST_S, NewsPauses

SHOP, OTHER = ("acme", "shop"), ("acme", "other")


def test_each_failure_doubles_the_pause_up_to_the_longest() -> None:
    """The first one alone is new."""
    pauses, at, waited = NewsPauses(), 100.0, []
    for number in range(12):
        assert pauses.may_try(SHOP, at)
        assert pauses.note_failed(SHOP, at) is (number == 0)
        seconds = FIRST_S
        while not pauses.may_try(SHOP, at + seconds):
            seconds *= 2.0
        waited.append(min(seconds, MOST_S))
        assert not pauses.may_try(SHOP, at + waited[-1] - 0.001)
        at += waited[-1]
    assert waited[:7] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
    assert set(waited[7:]) == {MOST_S}
    assert pauses.may_try(OTHER, 0.0)


def test_what_was_told_begins_anew() -> None:
    """It is known whether there was something to make good; an app of which nothing is to be told is forgotten."""
    pauses = NewsPauses()
    assert not pauses.note_told(SHOP)
    for _ in range(3):
        pauses.note_failed(SHOP, 0.0)
    assert pauses.note_told(SHOP)
    assert pauses.note_failed(SHOP, 0.0)
    pauses.note_failed(OTHER, 0.0)
    pauses.keep_only({OTHER})
    assert len(pauses) == 1
    assert pauses.may_try(SHOP, 0.0)
