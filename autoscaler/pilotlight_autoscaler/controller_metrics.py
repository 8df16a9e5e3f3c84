"""Metrics of the controller: whether it leads, its passes, its commands, and what versions want and hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager

import structlog
from prometheus_client.core import GaugeMetricFamily, Metric

from pilotlight_autoscaler.observations.world import World
from pilotlight_core.host.metrics.histogram import Histogram
from pilotlight_core.host.metrics.metric_families import (
    OTHER,
    counter,
    counter_by,
    gauge,
    gauge_by,
    histogram_by,
)
from pilotlight_core.model.messages.demand import Demand
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_core.model.messages.node_messages import Bind, Drain, Keep, Park, Stop, Unpark
from pilotlight_core.model.spec import Priority

COMMANDS: dict[type, str] = {
    Bind: "bind", Drain: "drain", Stop: "stop", Keep: "keep", Park: "park", Unpark: "unpark", Cut: "cut",
    SwitchMig: "switch_mig",
}  # fmt: skip


log = structlog.get_logger(__name__)


class ControllerMetrics:
    """Counts passes and commands, and keeps the last pass for a scrape."""

    def __init__(self) -> None:
        self.passes = {"all": Histogram(), "one": Histogram()}
        """Seconds of passes over all versions, and of those for one version's new calls."""
        self.failed_passes = 0
        self.failed_sweeps = 0
        self.lost_nodes = 0
        self._sweep_fails = False
        """Whether the last one has."""
        self._sizes: dict[str, tuple[int, int]] = {}
        """How many containers versions have, and should have."""
        self._active: Set[str] | None = None
        """Versions of whose sizes something is to be known; None: of all."""
        self.short = 0
        """Versions without a place, or beyond their tenant's limit."""
        self.refused_calls = self.late = 0
        """Calls that homes counted as such, of all versions since this process began."""
        self._commands: Counter[str] = Counter(dict.fromkeys(COMMANDS.values(), 0))

    def pass_ended(self, seconds: float, *, whole: bool) -> None:
        self.passes["all" if whole else "one"].observe(seconds)

    @contextmanager
    def sweep(self) -> Iterator[None]:
        """Count a sweep that goes wrong, and log the first in a row: there are twenty a second."""
        try:
            yield
        except Exception:
            self.failed_sweeps += 1
            if not self._sweep_fails:
                log.exception("what nodes have reported could not be taken over")
            self._sweep_fails = True
        else:
            self._sweep_fails = False

    def decided(self, sizes: Mapping[str, tuple[int, int]]) -> None:
        """A pass has decided on some versions: how many containers they have, and should have."""
        self._sizes |= sizes

    def keep(self, active: Set[str], *, refused: int) -> None:
        """Forget all versions that are not active, which may change meanwhile; so many have no place."""
        self._active = active
        if len(self._sizes) > 2 * len(active):
            self._sizes = {version: sizes for version, sizes in self._sizes.items() if version in active}
        self.short = refused

    def on_demand(self, demand: Demand) -> None:
        self.refused_calls += demand.refused_calls
        self.late += demand.late

    def command_sent(self, command: object) -> None:
        self._commands[COMMANDS.get(type(command), OTHER)] += 1

    def collect(self, world: World, at: float, *, leads: bool, decides: bool) -> Iterator[Metric]:
        """What this process did and heard by the instant `at`; who decides (or advises) knows what is wanted."""
        yield gauge("pilotlight_controller_leads", "1 while this controller leads.", int(leads))
        yield gauge("pilotlight_controller_nodes", "Nodes that this controller knows of.", len(world.nodes))
        text = "Nodes that fell silent without an end of theirs being planned."
        yield counter("pilotlight_controller_lost_nodes", text, self.lost_nodes)
        text = "How long passes took, over all versions or for one."
        yield histogram_by("pilotlight_controller_pass_seconds", text, "versions", self.passes)
        yield counter("pilotlight_controller_failed_passes", "Passes that went wrong.", self.failed_passes)
        text = "Takings over of what nodes reported, between passes, that went wrong."
        yield counter("pilotlight_controller_failed_sweeps", text, self.failed_sweeps)
        text = "Commands to agents, repeated ones too."
        yield counter_by("pilotlight_controller_commands", text, "command", self._commands)
        yield from self._demand([told for name in world.demands if (told := world.demand(name, at)) is not None])
        if decides:
            yield from self._wants()

    def _demand(self, told: list[Demand]) -> Iterator[Metric]:
        text = "Calls of all versions, as homes tell them: those that wait and those that run, by class."
        calls = GaugeMetricFamily("pilotlight_controller_calls", text, labels=("state", "class"))
        for priority in Priority:
            loads = [demand.classes[priority] for demand in told if priority in demand.classes]
            calls.add_metric(("queued", priority), sum(load.queued for load in loads))
            calls.add_metric(("running", priority), sum(load.running for load in loads))
        yield calls
        backlogs: dict[str, int] = {}
        for demand in told:  # each version of a function tells the jobs of them all
            backlogs[demand.function] = max(demand.backlog, backlogs.get(demand.function, 0))
        text = "Jobs that could begin and wait behind those that are queued."
        yield gauge("pilotlight_controller_backlog_jobs", text, sum(backlogs.values()))
        text = "Age of the oldest running call, since it was granted."
        oldest_ms = max((demand.oldest_run_ms for demand in told), default=0.0)
        yield gauge("pilotlight_controller_oldest_run_seconds", text, oldest_ms / 1000.0)
        text = "Calls turned away at their arrival for want of room or time."
        yield counter("pilotlight_controller_refused_calls", text, self.refused_calls)
        yield counter("pilotlight_controller_late_calls", "Calls whose time was over in the queue.", self.late)

    def _wants(self) -> Iterator[Metric]:
        active = self._sizes.keys() if self._active is None else self._active
        sizes = [each for version, each in self._sizes.items() if version in active]
        held = [size for size, _ in sizes]
        wants = [wanted for _, wanted in sizes]
        yield gauge_by(
            "pilotlight_controller_versions",
            "Versions that want containers, hold some, and found no place for all.",
            "state",
            {"wanting": sum(map(bool, wants)), "holding": sum(map(bool, held)), "short": self.short},
        )
        text = "Containers that versions want, and hold (with those on their way)."
        yield gauge_by("pilotlight_controller_containers", text, "state", {"wanted": sum(wants), "held": sum(held)})
