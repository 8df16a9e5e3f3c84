"""The turns of a container that is parked: pure."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.node_messages import SliceKind, SliceReport
from pilotlight_runtime.containers.parking import HookTurn, ParkPhase, ParkTurns, returns_to

ROUND = (ParkPhase.PARKING, ParkPhase.PARKED, ParkPhase.UNPARKING, ParkPhase.AWAKE)


def test_each_turn_follows_the_one_before() -> None:
    """Round and round; no other is taken."""
    turns = ParkTurns()
    for step in (*ROUND, *ROUND):
        for other in set(ParkPhase) - {step}:
            assert not turns.may(other)
            with pytest.raises(ValueError, match="cannot become"):
                turns.advance(other)
        turns.advance(step)
    assert turns.phase is ParkPhase.AWAKE


def test_only_what_is_on_its_way_can_stay() -> None:
    """It could not be frozen: it is where it was."""
    turns = ParkTurns()
    with pytest.raises(ValueError, match="not on its way"):
        turns.revert()
    turns.advance(ParkPhase.PARKING)
    turns.revert()
    assert turns.phase is ParkPhase.AWAKE


async def test_a_guest_answers_what_it_was_asked_once(anyio_backend: str) -> None:
    """What it says unasked, or twice, is no answer."""
    turn = HookTurn()
    assert not turn.answer("")
    asked = turn.begin()
    assert turn.answer("why not")
    assert not turn.answer("")
    assert await asked == "why not"

    asked = turn.begin()
    turn.end()
    turn.end()
    assert "ended" in await asked


def test_only_what_a_node_offers_again_is_returned_to() -> None:
    """What left a share, or several GPUs, would keep its memory for calls that never reach it."""
    ways = {
        "GPU-1": (SliceKind.GPU, True),
        "GPU-1+GPU-2": (SliceKind.GPU, False),
        "GPU-1:3g@0": (SliceKind.MIG, True),
        "GPU-1:500/1000~ctr_1": (SliceKind.SHARE, False),
    }
    for name, (kind, returns) in ways.items():
        part = SliceReport(id=name, kind=kind, device="GPU-1", ppm=1, price="H100")
        assert returns_to(part) is returns, name
