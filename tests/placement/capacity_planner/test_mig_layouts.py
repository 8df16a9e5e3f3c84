"""Full ways to cut a device, and devices that are being filled."""

from __future__ import annotations

import pytest

from pilotlight_core.model.devices import MigPlacement
from pilotlight_placement.capacity_planner.mig_layouts import PartialDevice, counts_of, fill_in, full_cuts
from pilotlight_placement.hardware.catalogue import family, standard

SEVEN = family("seven")
A100 = standard()["A100-80GB"]


def test_full_cuts_are_the_known_multisets() -> None:
    """19 maximal layouts hold 14 multisets, of which 1+2+3 and 3x1+3 are parts of others."""
    cuts = full_cuts(SEVEN, ("1g", "2g", "3g", "4g", "7g"))
    assert len(cuts) == 12
    counts = [counts_of(cut) for cut in cuts]
    assert not any(one < other for one in counts for other in counts)


def test_a_card_takes_the_highest_start_and_refuses_what_does_not_fit() -> None:
    """Small ones high, so that the lower half stays whole."""
    card = PartialDevice(device=A100, price=1.0)
    assert card.add("2g", "f")
    assert card.add("3g", "g")
    assert not card.add("3g", "h")
    assert not card.add("7g", "h")
    assert card.cutting().layout == (MigPlacement(start=0, profile="3g"), MigPlacement(start=4, profile="2g"))
    assert card.cutting().functions == ("g", "f")


def test_a_copy_of_a_card_is_its_own() -> None:
    """Trials leave what they began with alone."""
    card = PartialDevice(device=A100, price=1.0)
    card.copy().add("7g", "f")
    assert card.fill == 0


def test_a_device_that_cannot_be_cut() -> None:
    """A T4 has no slices."""
    with pytest.raises(ValueError, match="T4 cannot be cut"):
        PartialDevice(device=standard()["T4"], price=1.0).add("1g", "f")


def test_layouts_are_given_to_pieces_and_what_is_too_much_is_left_out() -> None:
    """A layout stays legal without a superfluous slice; a missing one is an error."""
    layout = tuple(MigPlacement(start=start, profile=key) for start, key in ((0, "4g"), (4, "2g"), (6, "1g")))
    cuttings = fill_in(A100, [layout, layout], [("4g", "f"), ("1g", "g")])
    assert [cutting.functions for cutting in cuttings] == [("f", "g")]
    with pytest.raises(ValueError, match="lack instances for"):
        fill_in(A100, [layout], [("3g", "f")])
