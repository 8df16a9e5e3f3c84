"""Classes of devices, their counts, and the order of units."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_placement.fleet.device_classes import (
    DeviceClass,
    DeviceClassIndex,
    node_rank,
    rank_in,
    round_down_octave,
)
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.catalogue import standard
from pilotlight_placement.hardware.node import MAX_UNITS
from tests.placement.makers import gpu, instance, node


@given(st.integers(0, 2**48), st.integers(0, MAX_UNITS - 1))
def test_a_units_rank_tells_its_node(rank: int, index: int) -> None:
    """Units stand by node, then by their place on it."""
    assert node_rank(rank_in(rank, index)) == rank
    assert rank_in(rank, index) < rank_in(rank + 1, 0)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_counts_are_rounded_down_to_an_eighth_of_an_octave(one: int, other: int) -> None:
    """In order, never up, by less than an eighth, and not at all where they are small."""
    rounded = round_down_octave(one)

    assert rounded <= one
    assert one - rounded <= one / 8
    assert one > 15 or rounded == one
    assert one > other or rounded <= round_down_octave(other)


def test_devices_of_one_kind_are_one_class_wherever_they_are() -> None:
    """A group for each domain; the counts are the class's."""
    fleet = Fleet([node(name, gpu(f"g-{name}", mig=True), zone=name) for name in ("a", "b")])
    (groups,) = fleet.classes.values()

    assert len(groups) == 2
    assert groups[0].class_index is groups[1].class_index
    fleet.hold(instance("c", "1g", 0, gpu_id="g-a", node="a"))
    assert groups[0].class_index.devices == {0: 1, 1: 1}
    assert groups[0].class_index.running == 1


def test_a_class_without_its_purchase_is_the_same_for_spot_and_on_demand() -> None:
    """What it can be cut into does not depend on how it was bought."""
    one, other = DeviceClass(name="T4", spot=True), DeviceClass(name="T4")

    assert one != other
    assert one.anywhere == other.anywhere == other


def test_scores_follow_the_counts_and_forget_them_on_reset() -> None:
    """A state that no device is in has no row."""
    fleet = Fleet([node("n", gpu("g", mig=True))])
    (group,) = fleet.groups.values()
    scores, family = group.scores.masks, standard()["H100-80GB"].family
    assert scores is not None
    assert family is not None
    index, profile = group.class_index, family.by_key["1g"].index
    assert [state for _, state, _ in index.row(scores, profile)] == [0]

    fleet.hold(instance("c", "7g", 0))

    assert index.row(scores, profile) == ()
    index.reset_scores()
    assert index.best(scores, profile, family.full) is None
    assert isinstance(index, DeviceClassIndex)
