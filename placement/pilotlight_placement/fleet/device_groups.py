"""The groups of alike devices in one domain, and how their places are scored by the mix of demand."""

from __future__ import annotations

from collections.abc import Mapping

from pilotlight_placement.fleet.device_classes import DeviceClass, DeviceClassIndex, DeviceGroup
from pilotlight_placement.fleet.model_rooms import ModelRooms
from pilotlight_placement.fragmentation.histogram import AskShape
from pilotlight_placement.fragmentation.scores import Scores, scores_of
from pilotlight_placement.hardware.node import Domain, Gpu, Node, Slot

ScoredKind = tuple[str, tuple[int, ...]]
"""The name and the variant of a kind of device."""


class DeviceGroups:
    """A group is made with the first device of it, and stays."""

    def __init__(self) -> None:
        self.by_domain: dict[tuple[DeviceClass, Domain], DeviceGroup] = {}
        self.by_class: dict[DeviceClass, list[DeviceGroup]] = {}
        """Those of one class, by their domains."""
        self.models = ModelRooms()
        self.mix: dict[AskShape, float] = {}
        """Part of all asks, by shape."""
        self._scores: dict[ScoredKind, Scores] = {}
        self._prepared: tuple[Mapping[AskShape, float], dict[ScoredKind, Scores]] = ({}, {})
        """What was made for a mix that is not followed yet."""
        self._scores_by_kind: dict[str, Scores] = {}

    def group_of(self, node: Node, part: Gpu | Slot) -> DeviceGroup:
        """The group of a part of a node."""
        sort = class_of_unit(part, spot=node.domain.spot)
        if (group := self.by_domain.get((sort, node.domain))) is None:
            device, slot = (part.device, None) if isinstance(part, Gpu) else (None, part)
            alike = self.by_class.setdefault(sort, [])
            kinds = len(device.cuts) if device is not None and sort.mig else 1
            class_index = alike[0].class_index if alike else DeviceClassIndex(kinds, sort.name, self.models)
            group = DeviceGroup(sort, node.domain, device, slot, class_index, self._scores_by_kind)
            self.by_domain[sort, node.domain] = group
            alike.append(group)
            alike.sort(key=lambda group: group.domain)
            self._score(group)
            if len(alike) == 1:
                self._claim()
        return group

    def retune(self, mix: Mapping[AskShape, float]) -> None:
        """Score places by a new mix of demand."""
        self.mix = dict(mix)
        self._scores = self._prepared[1] if self._prepared[0] is mix else {}
        self._prepared = ({}, {})
        for group in self.by_domain.values():
            self._score(group)
        self._claim()

    def prepare(self, mix: Mapping[AskShape, float]) -> bool:
        """Make the tables of one more kind of device that `retune` needs for a mix; whether all are there."""
        if self._prepared[0] is not mix:
            self._prepared = (mix, {})
        made = self._prepared[1]
        for group in self.by_domain.values():
            key = (group.kind.name, group.kind.variant)
            if group.device is not None and key not in made:
                made[key] = scores_of(group.device, mix)
                return False
        return True

    def _claim(self) -> None:
        self.models.claim([group.device for group in self.by_domain.values() if group.device is not None], self.mix)

    def _score(self, group: DeviceGroup) -> None:
        if group.device is None:
            group.class_index.reset_scores()
            return
        key = (group.kind.name, group.kind.variant)
        if key not in self._scores:
            self._scores[key] = scores_of(group.device, self.mix)
        group.scores = self._scores_by_kind[group.kind.name] = self._scores[key]
        group.class_index.reset_scores()


def class_of_unit(part: Gpu | Slot, *, spot: bool) -> DeviceClass:
    if isinstance(part, Slot):
        return DeviceClass(name=part.type, slot=f"{part.kind.value} {part.memory} {part.ppm}", spot=spot)
    figures = (part.device.memory, *(cut.memory for cut in part.device.cuts))
    return DeviceClass(name=part.device.name, mig=part.mig, shareable=part.shareable, spot=spot, variant=figures)
