"""The cost of a share, of whole devices, or of a slot to later asks, by the state of the device and of its node.

The cost is in devices: what the node can carry less afterwards, dearer for a model that is scarce, and its room for
asks of several devices, without what the ask itself takes. So what strands nothing costs 0. Costs are rounded to
STEP: the next steps of the policy, and at last the fixed order of nodes, decide between those that are alike, which
fills one node after another.

A table has the states that some decision met; each is computed once for each need, until the demand moves.
"""

from __future__ import annotations

from collections.abc import Mapping

from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_placement.fragmentation.host_fragmentation import QUARTERS, HostRoom
from pilotlight_placement.fragmentation.scores import ScoreKey, Scores
from pilotlight_placement.hardware.node import SHARE_UNITS

STEP = 50
"""Costs are compared in so many parts of a device. 50 to 100 do as well; without rounding it is worse by far."""
HOSTING = 1.0
"""Weight of the room for asks of several devices. 1 to 2 do as well; with less, nodes of empty devices are broken."""
CORES_OF_DEVICE = 16
"""Cores that count as much as a free device where a container without one looks for the fullest node."""

State = tuple[int, HostRoom]
"""Free parts of a device (or empty devices of a node), and what is free on the node."""


class ShareCosts(dict[State, ScoreKey]):
    """Keys of a share on a device that others share already, by its free parts."""

    def __init__(self, scores: Scores, premium: float, units: int, need: HostShare) -> None:
        self._scores, self._premium, self._units, self._need = scores, premium, units, need

    def __missing__(self, state: State) -> ScoreKey:
        free, room = state
        scores = self._scores
        taken = scores.load(free) - scores.load(free - self._units)
        lost = scores.host.lost(room, taken, self._need)
        key = self[state] = (rounded(lost * (1 + self._premium) - self._units / SHARE_UNITS), 0.0, 0)
        return key


class OpenedCosts(dict[State, ScoreKey]):
    """Keys of a share on an empty device, by the number of empty ones on its node: at equal cost after begun ones."""

    def __init__(self, scores: Scores, premium: float, units: int, need: HostShare) -> None:
        self._scores, self._premium, self._units, self._need = scores, premium, units, need

    def __missing__(self, state: State) -> ScoreKey:
        vacant, room = state
        scores = self._scores
        taken = 1 - scores.load(SHARE_UNITS - self._units)
        lost = scores.host.lost(room, taken, self._need) * (1 + self._premium)
        broken = scores.hosting(vacant) - scores.hosting(vacant - 1)
        key = self[state] = (rounded(lost + HOSTING * broken - self._units / SHARE_UNITS), 1.0, 0)
        return key


class WholeCosts(dict[State, ScoreKey]):
    """Keys of whole devices, by the number of empty ones on their node: at equal cost the node with the fewest."""

    def __init__(self, scores: Scores, premium: float, count: int, need: HostShare) -> None:
        self._scores, self._premium, self._count, self._need = scores, premium, count, need

    def __missing__(self, state: State) -> ScoreKey:
        vacant, room = state
        scores, count = self._scores, self._count
        lost = scores.host.lost(room, count, self._need) * (1 + self._premium)
        broken = scores.hosting(vacant) - scores.hosting(vacant - count)
        key = self[state] = (rounded(lost + HOSTING * broken - count), (vacant - count) / 64, 0)
        return key


class SlotCosts(dict[State, ScoreKey]):
    """Keys of a slot: what the devices of its node can carry less without these cores and this memory."""

    def __init__(self, kinds: Mapping[str, Scores], need: HostShare) -> None:
        self._kinds, self._need = kinds, need

    def __missing__(self, state: State) -> ScoreKey:
        room = state[1]
        scores = self._kinds.get(room.kind)
        lost = scores.host.lost(room, 0.0, self._need) if scores and room.cores >= 0 else 0.0
        left = room.quarters / QUARTERS + max(0, room.cores) / CORES_OF_DEVICE
        key = self[state] = (rounded(lost), left, 0)
        return key


def rounded(cost: float) -> float:
    return round(cost * STEP) / STEP
