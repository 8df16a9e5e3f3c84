"""The refusal in words: in use, in the other mode, or impossible."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_core.model.spec import Isolation
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import PlacedContainer, Slice
from pilotlight_placement.search.decision_record import NoFit, Placement
from pilotlight_placement.search.place import place
from tests.placement.makers import ask, gpu, node


def refused(fleet: Fleet, wanted: Ask) -> NoFit:
    found = place(fleet, wanted)
    assert isinstance(found, NoFit)
    return found


@pytest.mark.parametrize("isolation", list(Isolation))
def test_what_is_taken_is_not_impossible(isolation: Isolation) -> None:
    """It waits."""
    fleet = Fleet([node("n", gpu("a", "T4"))])
    found = place(fleet, ask("T4"))
    assert isinstance(found, Placement)
    fleet.hold(PlacedContainer(container="c", slice=found.slice))

    assert not refused(fleet, ask("T4", isolation=isolation)).never


def test_what_only_another_mode_could_hold_is_told_by_what_is_idle() -> None:
    """Idle GPUs are not described as in use."""
    fleet = Fleet([node("n", gpu("a"))])
    wanted = ask("H100", gib=8, slice="H100-80GB/1g")

    assert refused(fleet, wanted).reason.endswith(
        "are in the other MIG mode: 1, of which 1 is idle and can be switched"
    )

    whole = Slice(node="n", kind=SliceKind.GPU, type="H100-80GB", ids=("a",), memory=81559)
    fleet.hold(PlacedContainer(container="c", slice=whole, function="g"))
    assert refused(fleet, wanted).reason.endswith("are in use, in the other MIG mode")
