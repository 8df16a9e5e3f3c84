"""Nodes by name and rank, and what they bring: devices, weights, hosts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotlight_placement.fleet import fleet_nodes
from pilotlight_placement.fleet.device_groups import DeviceGroups
from pilotlight_placement.fleet.fleet_nodes import FleetNodes, is_same_hardware
from tests.placement.makers import cpu, gpu, node


def test_a_node_goes_with_all_that_it_brought() -> None:
    """Its devices, its weights, and the counts of those that serve nothing."""
    nodes = FleetNodes(DeviceGroups())
    there = node("n", gpu("a", "T4"), gpu("b", "T4", withdrawn="it is broken"), resident=frozenset({"w"}))

    nodes.replace(None, there)
    nodes.replace(None, node("m", gpu("c", "T4"), draining=True))

    rank = nodes.by_name["n"].rank
    assert nodes.resident == {"w": {rank}}
    assert (len(nodes.units), nodes.withdrawn, nodes.draining) == (3, 1, 1)
    assert nodes.by_rank[rank] is nodes.by_name["n"]

    for known in (there, nodes.by_name["m"].node):
        nodes.replace(known, None)

    assert (nodes.by_name, nodes.by_rank, nodes.units, nodes.resident) == ({}, {}, {}, {})
    assert (nodes.withdrawn, nodes.draining, nodes.inventory) == (0, 0, 4)


def test_other_weights_are_no_other_hardware() -> None:
    """The node stays what it is, with its devices; only a change of those counts as one of the inventory."""
    nodes = FleetNodes(DeviceGroups())
    before = node("n", gpu("a", "T4"), slots=(cpu(0),), resident=frozenset({"w"}))
    after = replace(before, resident=frozenset({"x"}))
    nodes.replace(None, before)
    place = nodes.by_name["n"]

    nodes.replace(before, after)

    assert nodes.by_name["n"] is place
    assert nodes.resident == {"x": {place.rank}}
    assert nodes.inventory == 1
    assert is_same_hardware(before, after)
    assert not is_same_hardware(before, replace(before, slots=()))


def test_two_nodes_whose_names_have_one_rank_get_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """The later one has the next that is free."""
    monkeypatch.setattr(fleet_nodes, "rank_of", lambda _: 5)
    nodes = FleetNodes(DeviceGroups())

    for name in ("n", "m"):
        nodes.replace(None, node(name, gpu("a", "T4")))

    assert [nodes.by_name[name].rank for name in ("n", "m")] == [5, 6]
