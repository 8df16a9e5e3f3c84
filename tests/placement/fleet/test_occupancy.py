"""The used part of a device, and the containers that may join it."""

from __future__ import annotations

import pytest

from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_placement.fleet.audit import check_integrity
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.occupancy import Unit, idle_cuts, occupied
from pilotlight_placement.hardware.node import SHARE_UNITS, PlacedContainer, Slice
from tests.placement.makers import gpu, instance, node


def share(container: str, units: int, tenant: str = "t", *, neighbours: bool = False) -> PlacedContainer:
    slice_ = Slice(node="n", kind=SliceKind.SHARE, type="T4", ids=("g",), memory=1, units=units)
    return PlacedContainer(container=container, slice=slice_, tenant=tenant, neighbours=neighbours)


def shared() -> Unit:
    return Fleet([node("n", gpu("g", "T4", shareable=True))]).places["n"].units[0]


def test_a_mig_device_is_the_mask_of_its_containers() -> None:
    """Idle instances occupy nothing, and are distinct from used ones."""
    there = (MigPlacement(start=0, profile="1g"), MigPlacement(start=4, profile="3g"))
    unit = Fleet([node("n", gpu("g", mig=True, instances=there))]).places["n"].units[0]
    family = unit.gpu.device.family if unit.gpu else None
    assert family is not None
    assert (unit.mask, len(unit.idle)) == (0, 2)

    unit.put(instance("a", "3g", 4))

    assert unit.mask == 0b11110000
    assert unit.idle == {(family.by_key["1g"].index, 0)} == idle_cuts(unit)
    assert "taken" in unit.refusal(instance("b", "1g", 6))
    unit.drop("a")
    assert occupied(unit) == (0, SHARE_UNITS, False)


def test_what_a_plan_cuts_anew_is_offered_to_nobody_else() -> None:
    """The rest of the device is; and what the plan itself starts there has its place."""
    there = (MigPlacement(start=0, profile="1g"), MigPlacement(start=1, profile="1g"))
    recut = (there[0], MigPlacement(start=0, profile="2g"))
    fleet = Fleet([node("n", gpu("g", mig=True, instances=there, recut=recut))])
    unit = fleet.places["n"].units[0]

    assert (unit.mask, unit.taken, unit.is_offered) == (0b11, 0, True)
    assert unit.refusal(instance("its own", "2g", 0)) == ""
    check_integrity(fleet)
    fleet.put(node("n", gpu("g", mig=True, instances=there)))
    assert (unit.mask, len(unit.idle)) == (0, 2)


@pytest.mark.parametrize(
    ("tenant", "neighbours", "taken"), [("t", False, True), ("u", True, True), ("u", False, False)]
)
def test_neighbours_are_taken_where_all_agree(tenant: str, neighbours: bool, taken: bool) -> None:
    """One's own tenant always; another one if it agrees, and everybody there does."""
    unit = shared()
    unit.put(share("a", 8, neighbours=True))

    assert unit.takes(tenant, neighbours=neighbours) is taken


def test_one_who_does_not_agree_closes_a_device_and_reopens_it_when_it_goes() -> None:
    """Agreement is everybody's."""
    unit = shared()
    unit.put(share("a", 8, neighbours=True))
    unit.put(share("b", 8))
    assert (unit.free, unit.agrees, unit.tenant) == (SHARE_UNITS - 16, False, "t")

    unit.drop("b")

    assert (unit.free, unit.agrees) == (SHARE_UNITS - 8, True)


def test_a_device_with_two_tenants_is_nobodys() -> None:
    """Until one of them is left."""
    unit = shared()
    unit.put(share("a", 8, neighbours=True))
    unit.put(share("b", 8, "u", neighbours=True))
    assert unit.tenant == ""

    unit.drop("a")

    assert unit.tenant == "u"
