"""What a gateway counts and keeps of calls: the recorder that every place tells, the tallies and traces behind it, and
who asks them.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial

from prometheus_client.core import Metric

from pilotlight_core.bus import Bus
from pilotlight_core.host.events.event_log import EventLog
from pilotlight_core.model.tracing.kept_call import KeptCall
from pilotlight_gateway.calls.call_sink import CallSink
from pilotlight_gateway.events.event_reader import PlatformEventSource, last_levels
from pilotlight_gateway.events.home_events import HomeEvents
from pilotlight_gateway.events.level_burns import levels_of
from pilotlight_gateway.events.level_watch import LevelSources, LevelWatch
from pilotlight_gateway.gateway_calls import GatewayCalls
from pilotlight_gateway.metrics.call_recorder import CallRecorder
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.metrics.tally_metrics import tally_counts
from pilotlight_gateway.tally.gateway_tallies import GatewayTallies
from pilotlight_gateway.tally.home_tallies import HomeTallies
from pilotlight_gateway.tally.job_tallies import RunCounter
from pilotlight_gateway.tally.tallies import Tallies
from pilotlight_gateway.tally.tally_answers import TallyAnswers, TallySources
from pilotlight_gateway.tally.tally_clock import TallyClock
from pilotlight_gateway.tally.tally_desk import TallyDesk
from pilotlight_gateway.tally.tally_exchange import BusPeers
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.traces.traced_calls import trace_calls
from pilotlight_gateway.traces.unusual_times import unusual_times
from pilotlight_gateway.webhooks.webhook_notices import DeliveryStore, notify_webhooks


class CallCounting:
    """Of one gateway; `running` keeps it up to date."""

    def __init__(
        self,
        bus: Bus,
        calls: GatewayCalls,
        metrics: GatewayMetrics,
        trace_ratio: float,
        *,
        region: str,
        name: str,
    ) -> None:
        """`trace_ratio`: the part of all calls that is traced though nobody asked."""

        def traffic() -> tuple[int, int]:
            counted = bus.statistics()
            return counted.bytes_in, counted.bytes_out

        tallies, own = Tallies(), GatewayTallies(name, traffic)
        sources = TallySources(calls=tallies, homes=HomeTallies(), own=own)
        self._sources, self._calls = sources, calls
        answers, table = TallyAnswers(sources), calls.table
        self._peers = BusPeers(bus, answers, table.others, region=region, gateway=table.instance)
        self._clock = TallyClock(sources, calls.drivers.homes.version_loads)
        self.metrics = metrics
        self.tracing = trace_calls(bus, table.others, trace_ratio, region=region, gateway=table.instance)
        self.tracing.keeper.unusual_ms = unusual_times(tallies)
        self.recorder = CallRecorder(metrics, time.monotonic, tallies, (self.tracing.keeper,))
        self.tracing.keeper.note_exemplar = self._note_exemplar
        self.tracing.keeper.note_sampled = metrics.note_sampled
        self.run_sinks: tuple[CallSink, ...] = (self.tracing.keeper, RunCounter(sources.jobs))
        """Who is told of runs of jobs that end."""
        self.desk = TallyDesk(answers, self._peers)

    @asynccontextmanager
    async def telling(
        self, registry: RegistryPort, log: EventLog, told: PlatformEventSource, hooks: DeliveryStore
    ) -> AsyncIterator[None]:
        """Tell people what the homes of this gateway see, until the block ends."""
        homes = HomeEvents(self._calls.drivers.homes, log)
        async with homes.running(), self._level_watch(registry, log, told, hooks).running():
            yield

    def _level_watch(
        self, registry: RegistryPort, log: EventLog, told: PlatformEventSource, hooks: DeliveryStore
    ) -> LevelWatch:

        def named() -> dict[str, dict[str, float]]:
            loads = self._calls.drivers.homes.version_loads()
            known = ((load.function, registry.version(load.version)) for load in loads)
            return {name: levels for name, version in known if version and (levels := levels_of(version.spec.slo))}

        sources = LevelSources(counted=self.desk, named=named, last_told=partial(last_levels, told))
        return LevelWatch(sources, log, partial(notify_webhooks, hooks))

    def _note_exemplar(self, kept: KeptCall) -> None:
        ended_at = kept.arrived_ns / 1e9 + kept.total_ms / 1000
        self.metrics.note_exemplar(kept.total_ms, kept.trace_id, ended_at, failed=bool(kept.code))

    def collect(self) -> Iterator[Metric]:
        """A `MetricSource`."""
        yield from self.metrics.collect()
        yield from tally_counts(*self._sources.arms)
        yield from self.tracing.keeper.collect()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Add up what is counted, and tell others of it, until the block ends."""
        async with self._peers, self._clock.running(), self.tracing.running():
            yield
