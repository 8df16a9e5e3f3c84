"""A node's reports: one each second and on each change."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from pilotlight_core.bus import BusError
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.node_messages import (
    ContainerState,
    NodeNotice,
    NodeReport,
    SandboxCeilings,
    SliceReport,
)
from pilotlight_core.model.messages.node_reports.report_revisions import ReportRevisions
from pilotlight_core.model.messages.ran import Ran
from pilotlight_core.model.versions.manifest_codec import FEATURES, REQUIREMENTS, SANDBOX_LIMITS, SECRET_FILES
from pilotlight_runtime.calls.gateway_links import Publisher
from pilotlight_runtime.containers.blanks.blank_pools import BlankPools
from pilotlight_runtime.containers.containers import Containers
from pilotlight_runtime.containers.files.node_weights import NodeWeights
from pilotlight_runtime.environments.environment_cache import EnvironmentCache
from pilotlight_runtime.metering.container_meter import WorkLog
from pilotlight_runtime.sandbox.sandbox_port import Guarantees

LEAST_S = 0.02
"""How long a change waits for others, to report them together."""


@dataclass(frozen=True, kw_only=True)
class NodeIdentity:
    """A node's names. `instance` is new with every start of its agent."""

    node: str
    instance: str
    region: str
    zone: str
    sandbox: str
    spot: bool = False
    pool: str = ""
    provider_id: str = ""


def features_of(guarantees: Guarantees, *, builds: bool) -> frozenset[str]:
    """What an agent with such sandboxes can do, of `FEATURES`; `builds`: whether it builds requirements."""
    lacking = {
        SANDBOX_LIMITS: not guarantees.sandbox_limits,
        SECRET_FILES: not guarantees.own_filesystem,
        REQUIREMENTS: not builds,
    }
    return FEATURES - {feature for feature, is_lacking in lacking.items() if is_lacking}


def with_blanks(slices: tuple[SliceReport, ...], ready: Mapping[str, str]) -> tuple[SliceReport, ...]:
    """The slices with the base environments of the blanks that are ready on them."""
    if not ready:
        return slices
    return tuple(
        msgspec.structs.replace(part, blank=ready[part.id]) if part.id in ready and not part.container else part
        for part in slices
    )


class Reporter:
    """Publishes NodeReports of the containers and blanks of a node, soon after `due` is set."""

    def __init__(
        self,
        bus: Publisher,
        identity: NodeIdentity,
        containers: Containers,
        pools: BlankPools,
        environments: EnvironmentCache,
        *,
        ceilings: SandboxCeilings,
        features: Iterable[str],
        due: asyncio.Event,
        clock: Callable[[], float],
        weights: NodeWeights,
        wall: Callable[[], float] = time.time,
        notice: Callable[[], NodeNotice | None] = lambda: None,
    ) -> None:
        """`notice`: what the node's provider has said of its end."""
        self.due = due
        self._bus = bus
        self._identity = identity
        self._containers = containers
        self._pools = pools
        self._environments = environments
        self._ceilings = ceilings
        self._features = tuple(sorted(features))
        self._clock = clock
        self._weights = weights
        self._wall = wall
        self._notice = notice
        self._seq = 0
        self._stopped = False
        self._revisions = ReportRevisions()

    async def run(self) -> None:
        """Publish a report soon after each change until cancelled."""
        while True:
            await self.due.wait()
            await asyncio.sleep(LEAST_S)
            if self.due.is_set():  # else a report has been sent meanwhile
                self.send()

    def send(self, *, stopped: bool = False) -> None:
        """Publish a report now, unless a `stopped` one was sent. One that the bus refuses is repeated in a second."""
        self.due.clear()
        if not self._stopped:
            self._stopped = stopped
            with contextlib.suppress(BusError):
                self._bus.publish_nowait(
                    subjects.beat(self._identity.region, self._identity.node), self.report(stopped)
                )

    def publish_work(self, work: WorkLog) -> None:
        """Publish the batches of the last second, if any ran; they are lost if the bus refuses."""
        if batches := work.take():
            ran = Ran(node=self._identity.node, instance=self._identity.instance, batches=batches)
            with contextlib.suppress(BusError):
                self._bus.publish_nowait(subjects.ran(self._identity.region, self._identity.node), ran)

    def report(self, stopped: bool) -> NodeReport:
        at, identity = self._clock(), self._identity
        containers, pools = self._containers, self._pools
        self._seq += 1
        report = NodeReport(
            node=identity.node,
            instance=identity.instance,
            seq=self._seq,
            region=identity.region,
            zone=identity.zone,
            sandbox=identity.sandbox,
            slices=with_blanks(containers.slices(), pools.on_slices),
            containers=tuple(c.report(at) for c in containers if c.state is not ContainerState.GONE),
            blanks=pools.ready,
            devices=containers.devices(),
            controller_epoch=containers.controller_epoch,
            draining=containers.draining,
            spot=identity.spot,
            pool=identity.pool,
            provider_id=identity.provider_id,
            stopped=stopped,
            host=containers.host,
            bases=pools.bases,
            features=self._features,
            ceilings=self._ceilings,
            ended=containers.ended(at),
            blank_sizes=pools.sizes or (),
            environments=self._environments.ids(),
            clock=self._wall(),
            memory=containers.memory,
            weights=self._weights.reports(),
            notice=self._notice(),
        )
        return self._revisions.numbered(report)
