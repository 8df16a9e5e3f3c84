"""What a node says of itself: a report each second and on each change."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from pilotlight_core.bus import BusError
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_messages import ContainerState, NodeReport
from pilotlight_core.model.messages.ran import Ran
from pilotlight_runtime.calls.origin_frames import Publisher
from pilotlight_runtime.containers.blank_pool import BlankPool
from pilotlight_runtime.containers.containers import Containers
from pilotlight_runtime.metering.work_log import WorkLog

LEAST_S = 0.02
"""Between two reports: what changes meanwhile is in the next one."""


@dataclass(frozen=True, kw_only=True)
class NodeIdentity:
    """Who a node is. `instance` is new with every start of its agent."""

    node: str
    instance: str
    region: str
    zone: str
    sandbox: str
    spot: bool = False


class Reporter:
    """Publishes NodeReports. `later(delay, callback)` runs a callback after so many seconds."""

    def __init__(
        self,
        bus: Publisher,
        identity: NodeIdentity,
        *,
        clock: Callable[[], float],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._bus = bus
        self._identity = identity
        self._clock = clock
        self._later = later
        self._seq = 0
        self._scheduled = False
        self._stopped = False
        self._sources: tuple[Containers, BlankPool] | None = None

    def watch(self, containers: Containers, pool: BlankPool) -> None:
        """What to report on."""
        self._sources = (containers, pool)

    def changed(self) -> None:
        """Say it soon."""
        if not self._scheduled:
            self._scheduled = True
            self._later(LEAST_S, self.send)

    def send(self, *, stopped: bool = False) -> None:
        """Say it now; what the bus does not take is said again with the next second."""
        self._scheduled = False
        if self._sources is not None and not self._stopped:
            self._stopped = stopped  # nothing comes after the last word
            with contextlib.suppress(BusError):
                self._bus.publish_nowait(
                    subjects.beat(self._identity.region, self._identity.node), self.report(*self._sources, stopped)
                )

    def tell_work(self, work: WorkLog) -> None:
        """Tell what ran in the last second, if anything did; what the bus does not take is lost."""
        if batches := work.take():
            told = Ran(node=self._identity.node, instance=self._identity.instance, batches=batches)
            with contextlib.suppress(BusError):
                self._bus.publish_nowait(subjects.ran(self._identity.region, self._identity.node), told)

    def report(self, containers: Containers, pool: BlankPool, stopped: bool) -> NodeReport:
        """How the node is."""
        at, identity = self._clock(), self._identity
        self._seq += 1
        return NodeReport(
            node=identity.node,
            instance=identity.instance,
            seq=self._seq,
            region=identity.region,
            zone=identity.zone,
            sandbox=identity.sandbox,
            slices=containers.slices(),
            containers=tuple(c.report(at) for c in containers if c.state is not ContainerState.GONE),
            blanks={pool.base.name: pool.ready},
            devices=containers.devices(),
            controller_epoch=containers.controller_epoch,
            draining=containers.draining,
            spot=identity.spot,
            stopped=stopped,
        )
