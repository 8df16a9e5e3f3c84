"""What a share, whole devices and a slot cost those who come later."""

from __future__ import annotations

from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_placement.fragmentation.histogram import AskShape
from pilotlight_placement.fragmentation.host_fragmentation import room_of
from pilotlight_placement.fragmentation.place_costs import OpenedCosts, ShareCosts, SlotCosts, WholeCosts
from pilotlight_placement.fragmentation.scores import scores_of
from pilotlight_placement.hardware.catalogue import standard
from pilotlight_placement.hardware.node import SHARE_UNITS

T4 = standard()["T4"]
HALF = SHARE_UNITS // 2
UNKNOWN = room_of(8, -1, 0, "T4")
NOTHING = HostShare()
HALVES = scores_of(T4, {AskShape(mib=T4.memory // 2): 0.7, AskShape(mib=T4.memory * 3 // 5): 0.3})
PAIRS = scores_of(T4, {AskShape(mib=0, count=2, share=False): 0.5, AskShape(mib=0, share=False): 0.5})
EIGHT_CORES = scores_of(T4, {AskShape(mib=0, share=False, cpu=8000): 1.0})


def cores(number: int) -> HostShare:
    return HostShare(cpu_millis=1000 * number)


def test_a_share_goes_where_the_rest_stays_useful() -> None:
    """A half is taken from a half, not from three fifths or from an empty device."""
    begun, opened = ShareCosts(HALVES, 0, HALF, NOTHING), OpenedCosts(HALVES, 0, HALF, NOTHING)

    assert begun[HALF, UNKNOWN] < begun[600, UNKNOWN]
    assert begun[HALF, UNKNOWN] < opened[2, UNKNOWN]


def test_the_last_pair_is_not_broken_where_pairs_are_asked_for() -> None:
    """Of a node with two empty devices one costs more than of a node with one, for a whole or for a share."""
    whole, share = WholeCosts(PAIRS, 0, 1, NOTHING), OpenedCosts(PAIRS, 0, HALF, NOTHING)

    assert whole[1, UNKNOWN] < whole[2, UNKNOWN]
    assert share[1, UNKNOWN] < share[2, UNKNOWN]


def test_whole_devices_that_cost_the_same_are_of_the_fullest_node() -> None:
    """At no demand for several, and to the policy's step of cost."""
    costs = WholeCosts(scores_of(T4, {}), 0, 1, NOTHING)

    assert costs[1, UNKNOWN] < costs[3, UNKNOWN]
    assert costs[3, UNKNOWN][0] - costs[1, UNKNOWN][0] < 0.1


def test_a_device_is_taken_where_its_cores_are_not_missed() -> None:
    """A container with one device and no cores to speak of goes beside short cores, one with many where they are."""
    poor, rich = room_of(8, 14, 0, "T4"), room_of(8, 96, 0, "T4")
    modest, hungry = WholeCosts(EIGHT_CORES, 0, 1, cores(0)), WholeCosts(EIGHT_CORES, 0, 1, cores(14))

    assert modest[2, poor] < modest[2, rich]
    assert hungry[2, rich] < hungry[2, poor]


def test_what_strands_nothing_costs_nothing() -> None:
    """A whole device beside plenty."""
    assert WholeCosts(EIGHT_CORES, 0, 1, cores(8))[1, room_of(4, 96, 0, "T4")][0] == 0


def test_a_scarce_model_costs_more() -> None:
    """Its premium is in every cost of its devices."""
    for table in (ShareCosts, OpenedCosts, WholeCosts):
        size = 1 if table is WholeCosts else HALF
        dear, usual = table(HALVES, 2.0, size, NOTHING), table(HALVES, 0.0, size, NOTHING)
        assert dear[HALF if table is ShareCosts else 1, UNKNOWN] > usual[HALF if table is ShareCosts else 1, UNKNOWN]


def test_a_slot_is_taken_where_no_device_needs_the_cores() -> None:
    """Before nodes whose devices need them; of those that lose nothing the fullest first."""
    costs = SlotCosts({"T4": EIGHT_CORES}, cores(8))
    taken, spare, needed = room_of(0, 8, 0, "T4"), room_of(4, 96, 0, "T4"), room_of(4, 8, 0, "T4")

    assert costs[1, taken] < costs[1, spare] < costs[1, needed]
    assert costs[1, taken][0] == costs[1, spare][0] == 0


def test_a_slot_of_a_node_of_which_nothing_is_known_costs_nothing() -> None:
    """A host that does not say what it has, or a node without GPUs."""
    costs = SlotCosts({"T4": EIGHT_CORES}, cores(8))

    assert costs[1, UNKNOWN][0] == costs[1, room_of(0, 16, 0, "")][0] == 0
