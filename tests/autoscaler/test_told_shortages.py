"""Callers hear of a shortage at once, and again as long as it lasts."""

from __future__ import annotations

import msgspec

from pilotlight_autoscaler.told_shortages import AGAIN_S, ToldShortages
from pilotlight_core.model.messages.node_messages import Shortage

FULL = Shortage(version="a", epoch=1, reason="all 4 are in use")


def test_it_is_told_at_once_and_every_two_seconds() -> None:
    """Not by each pass, of which there are four a second and one for each first call."""
    told = ToldShortages()
    heard = [at / 8 for at in range(33) if told.due([FULL], at / 8)]
    assert heard == [0.0, 2.0, 4.0]


def test_what_has_changed_is_told_at_once() -> None:
    """Another reason, or that it will never fit; not another leader's number alone."""
    told = ToldShortages()
    assert told.due([FULL], 0.0) == [FULL]
    never = msgspec.structs.replace(FULL, never=True)
    assert told.due([never], 0.1) == [never]
    assert told.due([msgspec.structs.replace(never, epoch=2)], 0.2) == []
    other = msgspec.structs.replace(FULL, version="b")
    assert told.due([never, other], 0.3) == [other]


def test_what_has_passed_is_forgotten() -> None:
    """A shortage that comes back is a new one."""
    told = ToldShortages()
    told.due([FULL], 0.0)
    told.forget(2 * AGAIN_S + 0.1)
    assert told == ToldShortages()
