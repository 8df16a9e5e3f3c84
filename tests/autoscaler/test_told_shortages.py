"""Callers hear of a shortage at once, and again as long as it lasts."""

from __future__ import annotations

import msgspec

from pilotlight_autoscaler.told_shortages import (
    AGAIN_S,
    MOST_TOGETHER,
    OLD_GATEWAYS_S,
    ToldShortages,
    subject_of_told,
)
from pilotlight_core.model.messages.node_messages import Shortage, Shortages

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


def test_those_that_are_due_are_told_together_in_messages_of_bounded_size() -> None:
    """On one subject, whatever their versions."""
    told = ToldShortages()
    many = [msgspec.structs.replace(FULL, version=str(number)) for number in range(MOST_TOGETHER + 1)]

    messages = told.messages(many, 0.0)
    assert messages == [Shortages(items=tuple(many[:MOST_TOGETHER])), Shortages(items=(many[-1],))]
    assert {subject_of_told(each, "eu") for each in messages} == {"pl.eu.shortages"}
    assert told.messages(many, 0.1) == []


def test_a_gateway_of_the_release_before_is_told_each_alone() -> None:
    """Until none was heard for a while."""
    told = ToldShortages()
    told.note_old_gateway(0.0)
    assert told.messages([FULL], 1.0) == [FULL]
    assert subject_of_told(FULL, "eu") == "pl.eu.shortage.a"

    assert told.messages([FULL], OLD_GATEWAYS_S) == [Shortages(items=(FULL,))]


def test_what_has_passed_is_forgotten() -> None:
    """A shortage that comes back is a new one."""
    told = ToldShortages()
    told.due([FULL], 0.0)
    told.forget(2 * AGAIN_S + 0.1)
    assert told == ToldShortages()


def test_who_waits_on_hears_the_same_again_without_being_decided_on() -> None:
    """Every two seconds, what holds then; and at once where that is something new. What has passed is not told."""
    told, lasting = ToldShortages(), {"a": FULL, "b": msgspec.structs.replace(FULL, version="b")}
    assert told.messages(lasting.values(), 0.0, lasting.get) == [Shortages(items=tuple(lasting.values()))]
    assert told.messages((), AGAIN_S - 0.1, lasting.get) == []

    del lasting["b"]
    assert told.messages((), AGAIN_S, lasting.get) == [Shortages(items=(FULL,))]
    assert told.messages((), 2 * AGAIN_S - 0.1, lasting.get, changed=["a"]) == []

    hopeful = lasting["a"] = msgspec.structs.replace(FULL, reason="all 4 are in use; waiting for a node")
    assert told.messages((), 2 * AGAIN_S - 0.1, lasting.get, changed=["a", "b"]) == [Shortages(items=(hopeful,))]
    assert told.messages((), 2 * AGAIN_S + 0.1, lasting.get) == []
