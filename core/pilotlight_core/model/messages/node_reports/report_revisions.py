"""Numbers a node's reports by what is new in them: most say the same again but for what moves all the time.

A controller hears a thousand reports a second. Of one with the number of the last it reads what moves, and no more; it
is whole even so, for whoever has not heard the last one, and for processes that know of no number.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from pilotlight_core.model.bounded import MOST_CONTAINERS, Count, Duration, Rising, ShortText
from pilotlight_core.model.devices import DeviceReport
from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.node_messages import NodeReport

GAUGES = frozenset({"utilisation", "memory_used", "processes"})
"""Of devices and their instances: always new, and no controller decides by them."""
MOVING: dict[str, int | float | None] = {
    "running": 0, "age_s": 0.0, "idle_s": 0.0, "calls": 0, "memory_bytes": 0, "engine": None,
    "cpu_ms": 0, "throttled_ms": 0,
}  # fmt: skip
"""Of containers; and what stands there in a report without what moves."""


class MovingContainer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What moves of a `ContainerReport`, as far as a controller decides by it."""

    id: ShortText
    running: Count
    age_s: Duration
    idle_s: Duration
    engine: EngineReport | None = None


class SteadyReport(Message, frozen=True, kw_only=True, gc=False, tag="NodeReport"):
    """A `NodeReport` of which only this is new."""

    node: ShortText
    instance: ShortText
    seq: Rising
    revision: Rising = 0
    containers: Annotated[tuple[MovingContainer, ...], Meta(max_length=MOST_CONTAINERS)] = ()
    """In the order of the report."""


class ReportRevisions:
    """Numbers the reports of one incarnation of an agent, in their order."""

    def __init__(self) -> None:
        self._last: NodeReport | None = None
        self._revision = 0

    def numbered(self, report: NodeReport) -> NodeReport:
        """The report with the number of the last one, or with the next if more than what moves is new."""
        still = without_moving(report)
        if self._last is None or still != self._last:
            self._last, self._revision = still, self._revision + 1
        return replace(report, revision=self._revision)


def without_moving(report: NodeReport) -> NodeReport:
    """What two reports with the same number have in common."""
    containers = tuple([replace(each, **MOVING) for each in report.containers])
    return replace(report, seq=0, clock=0.0, containers=containers, devices=tuple(map(_without_gauges, report.devices)))


def _without_gauges(device: DeviceReport) -> DeviceReport:
    instances = tuple([replace(each, utilisation=None) for each in device.instances])
    return replace(device, instances=instances, utilisation=None, memory_used=None, processes=None)
