"""Reads for announced messages are repeated, and given up in the end."""

from __future__ import annotations

from pilotlight_core.bus.doorbells import PAUSES_S, PendingReads


def test_nothing_is_looked_for_that_was_read() -> None:
    """A read of more messages than were announced does not count against the next ring."""
    rings = PendingReads()
    assert (rings.due, rings.pause()) == (False, None)
    rings.ring()
    rings.ring()
    rings.read(1)
    assert (rings.due, rings.pause()) == (True, PAUSES_S[0])
    rings.read(3)
    assert (rings.due, rings.pause()) == (False, None)
    rings.ring()
    assert rings.due


def test_what_never_comes_is_given_up() -> None:
    """The pauses grow up to a limit; another ring restarts them."""
    rings = PendingReads()
    rings.ring()
    assert [rings.pause() for _ in PAUSES_S] == list(PAUSES_S)
    rings.ring()
    assert [rings.pause() for _ in PAUSES_S] == list(PAUSES_S)
    assert (rings.pause(), rings.due) == (None, False)
