"""The export of traces to a collector."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import new_call_id, token
from pilotlight_core.model.messages.scheduling import TraceBatch
from pilotlight_core.model.tracing.sampled_call import SampledGroup
from pilotlight_gateway.traces import trace_exporter as room
from pilotlight_gateway.traces.trace_exporter import MOST_WAITING, TraceExporter, calls_of, endpoint_of, headers_of
from tests.builders.kept import CALL_ID, kept_call, sampled_call, sheet_of
from tests.system.support.trace_collector import TraceCollector, trace_collector
from tests.waiting import until


@pytest.mark.parametrize(
    ("url", "posted"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("https://otel.example.com/", "https://otel.example.com/v1/traces"),
        ("https://langfuse.example.com/api/public/otel", "https://langfuse.example.com/api/public/otel/v1/traces"),
        ("https://otel.example.com/v1/traces", "https://otel.example.com/v1/traces"),
    ],
)
def test_an_endpoint_is_a_collector_or_its_path(url: str, posted: str) -> None:
    """As OpenTelemetry's own variable has it."""
    assert endpoint_of(url) == posted


@pytest.mark.parametrize("url", ["otel.example.com:4318", "ftp://x", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="otlp_endpoint"):
        endpoint_of(url)


def test_headers_are_read_as_opentelemetry_writes_them() -> None:
    """Whatever is wrong in them is not repeated: they are secrets."""
    assert headers_of("Authorization=Basic%20eDp5, x-scope = acme,") == {
        "authorization": "Basic eDp5",
        "x-scope": "acme",
    }
    with pytest.raises(BadInput) as refused:
        headers_of("hush-hush")
    assert "hush-hush" not in str(refused.value)


@pytest.fixture
def collector() -> Iterator[TraceCollector]:
    with trace_collector() as running:
        yield running


@asynccontextmanager
async def exporting(bus: Bus, url: str, region: str) -> AsyncIterator[TraceExporter]:
    """One that exports while the block lasts, and has begun to."""
    exporter = TraceExporter(bus, endpoint=endpoint_of(url), headers={"authorization": "Basic eDp5"}, region=region)
    async with bus.lease("duty.traces", token(8)) as lease:
        task = asyncio.ensure_future(exporter.export_until_cancelled(lease))
        try:
            await asyncio.wait([task], timeout=0.0)
            yield exporter
        finally:
            task.cancel()
            await asyncio.wait([task])
            await exporter.aclose()


def counted(exporter: TraceExporter) -> dict[str, float]:
    """What its metrics say that is not 0."""
    samples = [sample for metric in exporter.collect() for sample in metric.samples]
    return {sample.labels.get("result", "waiting"): sample.value for sample in samples if sample.value}


async def test_what_gateways_send_arrives_at_the_collector(bus: Bus, collector: TraceCollector) -> None:
    """With the operator's headers."""
    region = token(8)
    async with exporting(bus, collector.url, region) as exporter:
        while not collector.spans:
            bus.publish_nowait(subjects.traces(region), TraceBatch(gateway="g1", calls=(kept_call(),)))
            await asyncio.sleep(0.01)
        root = collector.root_of(CALL_ID)
        assert root is not None
        assert (root.name, collector.headers[0]["authorization"]) == ("shop.rank", "Basic eDp5")
        await until(lambda: counted(exporter).get("exported"))


async def test_what_it_cannot_take_now_is_sent_again(
    bus: Bus, collector: TraceCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it refuses is dropped and counted; a collector that is gone drops too, and stops nothing."""
    monkeypatch.setattr(room, "FIRST_PAUSE_S", 0.001)
    collector.statuses = [503, 429, 200, 400]
    async with exporting(bus, collector.url, token(8)) as exporter:
        exporter.take(TraceBatch(gateway="g1", calls=(kept_call(),)))
        await until(lambda: counted(exporter) == {"exported": 1})
        exporter.take(TraceBatch(gateway="g1", calls=(kept_call(),)))
        await until(lambda: counted(exporter) == {"exported": 1, "refused": 1})
    async with exporting(bus, "http://127.0.0.1:1", token(8)) as exporter:
        exporter.take(TraceBatch(gateway="g1", calls=(kept_call(),)))
        await until(lambda: counted(exporter) == {"unreachable": 1})


async def test_what_waits_is_bounded(bus: Bus) -> None:
    """The oldest go."""
    exporter = TraceExporter(bus, endpoint="http://127.0.0.1:1/v1/traces", headers={}, region="local")
    for _ in range(MOST_WAITING // 200 + 1):
        exporter.take(TraceBatch(gateway="g1", calls=(kept_call(),) * 200))
    assert counted(exporter)["waiting"] == MOST_WAITING
    assert counted(exporter)["crowded"] == 8


async def test_sampled_calls_arrive_whichever_release_sent_them(bus: Bus, collector: TraceCollector) -> None:
    """And count as many as they are."""
    one, other = sampled_call(), sampled_call(id=new_call_id("local", 1, 1_800_000_001.0))
    async with exporting(bus, collector.url, token(8)) as exporter:
        former = (SampledGroup(other.kind, (other.times,)),)
        exporter.take(TraceBatch(gateway="g1", sampled=former, sheets=(sheet_of(one, one),)))
        await until(lambda: counted(exporter) == {"exported": 3})
    assert [root is not None for root in map(collector.root_of, (one.id, other.id))] == [True, True]


async def test_what_waits_in_sheets_is_bounded_too(bus: Bus) -> None:
    """The oldest sheets go."""
    exporter = TraceExporter(bus, endpoint="http://127.0.0.1:1/v1/traces", headers={}, region="local")
    sheet = sheet_of(*[sampled_call()] * 100)
    exporter.take(TraceBatch(gateway="g1", sheets=(sheet,) * 90))
    assert counted(exporter) == {"waiting": 8_100, "crowded": 900}
    assert [calls_of(exporter._next_calls()) for _ in range(2)] == [600, 600]
    assert counted(exporter)["waiting"] == 6_900
