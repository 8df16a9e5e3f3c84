"""How many calls a container of an engine takes."""

from __future__ import annotations

from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_runtime.containers.pace_gate import PaceGate

SLOW, QUICK = EngineReport(inter_token_ms=80.0), EngineReport(inter_token_ms=40.0)


def test_without_a_level_it_takes_all() -> None:
    gate = PaceGate(None)

    assert not gate.note(SLOW, held=3, most=8)
    assert gate.slots(held=3, most=8) == 8


def test_beyond_its_level_it_takes_no_further_ones() -> None:
    """And none in the place of those that end."""
    gate = PaceGate(50.0)
    assert gate.slots(held=6, most=8) == 8

    assert gate.note(SLOW, held=6, most=8)
    assert [gate.slots(held=held, most=8) for held in (6, 4)] == [6, 4]


def test_one_that_holds_none_takes_one() -> None:
    gate = PaceGate(50.0)
    gate.note(SLOW, held=0, most=8)

    assert gate.slots(held=0, most=8) == 1


def test_it_recovers_step_by_step() -> None:
    gate = PaceGate(50.0)
    gate.note(SLOW, held=16, most=32)
    gate.note(SLOW, held=10, most=32)
    told = []
    while gate.note(QUICK, held=8, most=32):
        told.append(gate.slots(held=8, most=32))

    assert told[:4] == [11, 12, 13, 14]
    assert told[-1] == 32
    assert told == sorted(told)
    assert not gate.note(QUICK, held=8, most=32)


def test_it_offers_no_less_than_it_holds() -> None:
    """Calls that came before its word was heard are held."""
    gate = PaceGate(50.0)
    gate.note(SLOW, held=2, most=8)
    gate.note(QUICK, held=2, most=8)

    assert gate.slots(held=5, most=8) == 5
