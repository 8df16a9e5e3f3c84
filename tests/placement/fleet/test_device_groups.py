"""Groups of alike devices, and their scores by the mix of demand."""

from __future__ import annotations

from pilotlight_placement.fleet.device_groups import DeviceGroups, class_of_unit
from pilotlight_placement.fragmentation.histogram import AskShape
from tests.placement.makers import ask, cpu, gpu, node


def test_alike_devices_of_one_domain_share_a_group_and_those_of_others_its_class() -> None:
    """What is bought as spot is of another class; groups of a class are in the order of their domains."""
    groups = DeviceGroups()
    late, early = node("n", gpu("a", "T4"), gpu("b", "T4"), zone="z"), node("m", gpu("c", "T4"), zone="a")
    first, second = (groups.group_of(late, part) for part in late.gpus)
    elsewhere = groups.group_of(early, early.gpus[0])
    spot = node("s", gpu("d", "T4"), zone="z", spot=True)

    assert first is second
    assert elsewhere is not first
    assert elsewhere.class_index is first.class_index
    assert groups.by_class[first.kind] == [elsewhere, first]
    assert groups.group_of(spot, spot.gpus[0]).kind != first.kind
    assert class_of_unit(cpu(0), spot=False).slot


def test_another_mix_of_demand_scores_all_groups_anew() -> None:
    """Those that come later are scored by it too; devices of one kind share their scores."""
    groups = DeviceGroups()
    large = node("n", gpu("a", "H100-80GB", mig=True), zone="z")
    group = groups.group_of(large, large.gpus[0])
    before = group.scores
    shape = AskShape.of(ask("H100", gib=8))
    assert shape is not None

    groups.retune({shape: 1.0})

    assert group.scores is not before
    assert groups.mix == {shape: 1.0}
    other = node("m", gpu("b", "H100-80GB", mig=True), zone="a")
    assert groups.group_of(other, other.gpus[0]).scores is group.scores
