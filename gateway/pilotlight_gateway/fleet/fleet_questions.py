"""Answers questions about the fleet's hardware, one at a time in a thread.

A fleet of ten thousand GPUs takes a second to build, so it is rebuilt only when the hardware changes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from pilotlight_core.model.messages.node_messages import NodeReport, SliceKind
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.reports import node_of

T = TypeVar("T")


class Inventory:
    """The fleet's hardware, as of the last reports."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._using = threading.Lock()
        """Needed besides `_turn`: threads outlive cancelled waiters, and questions change the fleet for a while."""
        self._seen: Hashable = None
        self._fleet = Fleet()

    async def ask(self, reports: Sequence[NodeReport], question: Callable[[Fleet], T]) -> T:
        """The answer of `question`, which must leave the fleet unchanged."""
        async with self._turn:
            return await asyncio.to_thread(self._answer, reports, question)

    def _answer(self, reports: Sequence[NodeReport], question: Callable[[Fleet], T]) -> T:
        seen = tuple(sorted(map(inventory_of, reports), key=lambda inventory: inventory[0]))
        with self._using:
            if seen != self._seen:
                self._seen, self._fleet = seen, available_node(reports)
            return question(self._fleet)


def inventory_of(report: NodeReport) -> tuple[str, tuple[Hashable, ...]]:
    """A node's name and hardware, without its use and its GPUs' cuts."""
    return report.node, (
        report.instance,
        (report.region, report.zone, report.spot, report.host, report.bases, report.features, report.ceilings),
        tuple((device.id, device.type, device.memory, device.mig, device.shareable) for device in report.devices),
        tuple(
            (part.id, part.gpu_type, part.memory, part.ppm)
            for part in report.slices
            if part.kind is SliceKind.CPU or not report.devices
        ),
    )


def available_node(reports: Iterable[NodeReport]) -> Fleet:
    """The hardware, including draining nodes and withdrawn GPUs, which come back."""
    nodes = [node_of(report) for report in reports]
    return Fleet(
        replace(node, draining=False, gpus=tuple(replace(gpu, withdrawn="", kept="") for gpu in node.gpus))
        for node in nodes
    )
