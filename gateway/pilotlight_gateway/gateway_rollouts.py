"""A gateway's part in rollouts, over a bus: it tells of its calls, runs shadows, and keeps all rollouts by turns."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import structlog
from prometheus_client.core import Metric

from pilotlight_core.bus import Bus
from pilotlight_core.host.blobs import BlobMissing
from pilotlight_core.host.events.event_log import EventLog
from pilotlight_core.host.metrics.metric_families import counter, counter_by
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutRecord
from pilotlight_gateway.deploys.moves.app_moves import AppMoves
from pilotlight_gateway.gateway_calls import GatewayCalls
from pilotlight_gateway.http_wiring import HttpParts, make_deployer
from pilotlight_gateway.leased import while_leased
from pilotlight_gateway.metrics.split_metrics import split_call_counts
from pilotlight_gateway.rollouts.call_rates import CallRates
from pilotlight_gateway.rollouts.compared_feed import ComparedFeed
from pilotlight_gateway.rollouts.compared_sink import ComparedSink
from pilotlight_gateway.rollouts.evidence_store import BusEvidence
from pilotlight_gateway.rollouts.gate_sender import GateSender
from pilotlight_gateway.rollouts.rollout_facts import FactSources
from pilotlight_gateway.rollouts.rollout_gates import RolloutGates
from pilotlight_gateway.rollouts.rollout_keeper import RolloutKeeper
from pilotlight_gateway.rollouts.rollout_news import RolloutTeller
from pilotlight_gateway.rollouts.rollout_parts import RolloutParts
from pilotlight_gateway.rollouts.running_calls import RunningCalls
from pilotlight_gateway.settings import ServeSettings
from pilotlight_gateway.shadows.shadow_calls import ShadowCalls
from pilotlight_gateway.shadows.shadow_pairs import ShadowPairs
from pilotlight_gateway.supply.supply_desk import SupplyDesk
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.webhooks.bus_webhooks import BusWebhooks

LEASE = "duty.rollouts"
AGAIN_S = 2.0
"""After an error of the duty itself."""

log = structlog.get_logger(__name__)


class GatewayRollouts:
    """Of one gateway. `name`: whose lease it is."""

    def __init__(self, settings: ServeSettings, bus: Bus, calls: GatewayCalls, events: EventLog, *, name: str) -> None:
        self._settings = settings
        self._bus = bus
        self._calls = calls
        self._name = name
        self._feed = ComparedFeed(bus, region=settings.region, gateway=name)
        self._counts = Counter[str]()
        self.split_counts = Counter[str]()
        """Calls by the side of a rollout on which they were."""
        self._events = events
        self.parts = RolloutParts(store=BusEvidence(bus, region=settings.region))

    def collect(self) -> Iterator[Metric]:
        """A `MetricSource`."""
        yield from self._feed.collect()
        yield counter(
            "pilotlight_rollout_calls_folded", "Calls that the judge has folded here.", self._counts["folded"]
        )
        yield from split_call_counts(self.split_counts)
        text = "What was decided of rollouts here."
        acts = {act: self._counts[act] for act in ("move", "roll_back", "promote", "end")}
        yield counter_by("pilotlight_rollout_decisions", text, "action", acts)

    @asynccontextmanager
    async def running(self, parts: HttpParts, registry: Registry) -> AsyncIterator[None]:
        """Tell of calls, run shadows, and keep rollouts while this gateway has the lease, until the block ends."""
        sink = ComparedSink(registry, self._feed.note)
        shadows = ShadowCalls(
            calls=parts.calls, registry=registry, schemas=parts.schemas, codec=parts.codec, budget=parts.budget,
            clock=time.monotonic,
        )  # fmt: skip
        pairs = ShadowPairs(records=registry, shadows=shadows, budget=parts.budget, note=sink.pair_ran)
        running = RunningCalls(
            find=self._calls.drivers.origins.find, compared=sink.running_call, read=self.parts.store.limits,
            note=self._feed.note,
        )  # fmt: skip
        self._calls.drivers.origins.on_begun = running.begun
        parts.recorder.sinks = (*parts.recorder.sinks, sink, pairs)
        self._calls.drivers.origins.on_failed_start = parts.split_calls.on_failed_start = sink.start_failed
        sender = GateSender(allowed=self._settings.webhook_networks, ca_file=self._settings.webhook_ca_file)
        async with self._feed.running(), sender.running(), asyncio.TaskGroup() as group:
            keeper = self._keeper(parts, registry, sender)
            tasks = [
                group.create_task(pairs.run()),
                group.create_task(running.run()),
                group.create_task(self._keep(keeper)),
            ]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                sink.report_held()

    def _keeper(self, parts: HttpParts, registry: Registry, sender: GateSender) -> RolloutKeeper:
        fleet = self._calls.fleet
        supply = parts.supply.desk

        async def check(_record: RolloutRecord, rollout: Rollout) -> str:
            return await why_refused(registry, supply, rollout, time.time())

        return RolloutKeeper(
            registry=registry,
            store=self.parts.store,
            moves=AppMoves(registry=registry),
            make_twin=make_deployer(parts).twin,
            sources=FactSources(
                registry=registry,
                reports=lambda: fleet.reports(time.monotonic()),
                breaker_of=lambda version: fleet.breaker_of(version, time.monotonic()),
            ),
            gates=RolloutGates(sender=sender),
            notify_all=RolloutTeller(registry=registry, events=self._events, hooks=BusWebhooks(self._bus)).notify_all,
            rate_of=CallRates(parts.tallies).per_hour,
            check=check,
            counts=self._counts,
        )

    async def _keep(self, keeper: RolloutKeeper) -> None:
        while True:
            try:
                await while_leased(self._bus, self._bus.lease(LEASE, self._name), keeper.run)
            except Exception:
                log.exception("keeping rollouts failed; it begins anew")
            await asyncio.sleep(AGAIN_S)


async def why_refused(registry: RegistryPort, supply: SupplyDesk, rollout: Rollout, at: float) -> str:
    """Why a new version of a rollout may not run as of now, by policies, or by its key; "": it may."""
    for function, version_id in sorted(rollout.canary.items()):
        version = registry.version(version_id) or await registry.fetch_version(version_id)
        if version is None:
            return f"The new version of {function} is not kept any more."
        try:
            review = await supply.judged(version, at)
        except BlobMissing:
            return f"The manifest of {version.ref} is deleted."
        if unsigned := list(review.facts.unsigned.values()):
            return f"No container of {version.ref} starts: {unsigned[0]}"
        if refused := review.verdict.refused:
            first = refused[0]
            return f"A policy refuses {version.ref}: {first.rule} of {first.component}: {first.says}"
    return ""
