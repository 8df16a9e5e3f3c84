"""The hardware of the fleet, for questions about it: one at a time, each in a thread.

Ten thousand GPUs take a second to put together, so the result is kept until the hardware changes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from pilotlight_core.model.messages.agent_messages import NodeReport, SliceKind
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.reports import node_of

T = TypeVar("T")


class Inventory:
    """A fleet that is always the one of the last reports."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._using = threading.Lock()
        """Besides: a thread goes on when whoever waited for it is cancelled, and questions try things on the fleet."""
        self._seen: Hashable = None
        self._fleet = Fleet()

    async def ask(self, reports: Sequence[NodeReport], question: Callable[[Fleet], T]) -> T:
        """The answer of `question`, which leaves the fleet as it is."""
        async with self._turn:
            return await asyncio.to_thread(self._answer, reports, question)

    def _answer(self, reports: Sequence[NodeReport], question: Callable[[Fleet], T]) -> T:
        seen = tuple(sorted(map(inventory_of, reports), key=lambda told: told[0]))
        with self._using:
            if seen != self._seen:
                self._seen, self._fleet = seen, available_node(reports)
            return question(self._fleet)


def inventory_of(report: NodeReport) -> tuple[str, tuple[Hashable, ...]]:
    """A node, and all of its report that says what it consists of: nothing of who uses it, nor how GPUs are cut."""
    return report.node, (
        report.instance,
        (report.region, report.zone, report.spot),
        tuple((device.id, device.type, device.memory, device.mig, device.shareable) for device in report.devices),
        tuple(
            (part.id, part.gpu_type, part.memory, part.ppm)
            for part in report.slices
            if part.kind is SliceKind.CPU or not report.devices
        ),
    )


def available_node(reports: Iterable[NodeReport]) -> Fleet:
    """The hardware, used or not: draining nodes and GPUs that are being changed come back."""
    nodes = [node_of(report) for report in reports]
    return Fleet(
        replace(node, draining=False, gpus=tuple(replace(gpu, withdrawn="", kept="") for gpu in node.gpus))
        for node in nodes
    )
