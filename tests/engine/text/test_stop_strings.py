"""Stops that come whole, in pieces, and nearly."""

from __future__ import annotations

from pilotlight_engine.text.stop_strings import StopStrings


def test_a_stop_in_pieces_is_found_and_not_passed_on() -> None:
    stops = StopStrings(["<end>"])

    assert [stops.add(piece) for piece in ("say <", "en", "d> more", "x")] == ["say ", "", "", ""]
    assert stops.has_stopped
    assert stops.flush() == ""


def test_what_only_begins_like_a_stop_is_passed_on_in_the_end() -> None:
    stops = StopStrings(["<end>"])

    assert stops.add("a <en") == "a "
    assert stops.add("try> ") == "<entry> "
    assert stops.add("<") == ""
    assert stops.flush() == "<"
    assert not stops.has_stopped


def test_the_first_of_several_counts() -> None:
    stops = StopStrings(["\n\n", "b"])

    assert stops.add("a b\n\n") == "a "
    assert StopStrings([]).add("x") == "x"
