"""What devices are, and what is taken of them, in words."""

from __future__ import annotations

from pilotlight_placement.asks.ask import CPU
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import PlacedContainer
from pilotlight_placement.search.unit_words import is_asked, name_of, state_of
from tests.placement.makers import ask, chosen, cpu, gpu, node


def test_a_unit_is_called_what_an_ask_would_call_it() -> None:
    """Any GPU of a kind is of its type, and a CPU slot is only that."""
    fleet = Fleet([node("n", gpu("a", "H100-80GB"), slots=(cpu(0),))])
    slot, device = (fleet.places["n"].by_id[name] for name in ("cpu-0", "a"))

    assert (name_of(slot), name_of(device)) == ("a CPU slot", "a GPU (H100-80GB)")
    assert (is_asked(slot, CPU), is_asked(slot, "H100")) == (True, False)
    assert (is_asked(device, CPU), is_asked(device, "H100"), is_asked(device, "T4")) == (False, True, False)


def test_what_is_taken_of_a_unit_is_said() -> None:
    """Of a slot that it is, of whole devices how many are left on the node."""
    fleet = Fleet([node("n", gpu("a", "T4"), gpu("b", "T4"), slots=(cpu(0),))])
    slot, device = (fleet.places["n"].by_id[name] for name in ("cpu-0", "a"))
    assert (state_of(slot), state_of(device)) == ("it is free", "2 of the node's T4 are free")

    fleet.hold(PlacedContainer(container="c", slice=chosen(fleet, ask(CPU))))

    assert state_of(slot) == "it is taken"
