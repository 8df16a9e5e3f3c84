"""What was heard of and is not read yet is looked for, and given up in the end."""

from __future__ import annotations

from pilotlight_core.bus.doorbells import PAUSES_S, PendingReads


def test_nothing_is_looked_for_that_was_read() -> None:
    """As many as rang; what nobody heard of does not count against the next ring."""
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
    """After pauses that grow; another ring begins anew."""
    rings = PendingReads()
    rings.ring()
    assert [rings.pause() for _ in PAUSES_S] == list(PAUSES_S)
    rings.ring()
    assert [rings.pause() for _ in PAUSES_S] == list(PAUSES_S)
    assert (rings.pause(), rings.due) == (None, False)
