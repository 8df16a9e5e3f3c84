"""Traces of calls through a whole platform: from a client's traceparent to a collector, and to whoever asks why."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from pilotlight_core.model.tracing.trace_context import own_trace_id
from tests.system.support.platform import Platform
from tests.system.support.sample_apps import APPS, deployed
from tests.system.support.trace_collector import CollectedSpan, TraceCollector
from tests.waiting import wait_until

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ASKED = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "congo=t61rcWkgMzE"}


@pytest.fixture(scope="module", autouse=True)
def _traced(platform: Platform) -> Iterator[None]:
    with deployed(platform, APPS / "traced" / "app.py"):
        yield


def answer(platform: Platform, function: str, headers: dict[str, str], **arguments: Any) -> dict[str, Any]:
    path = f"/v1/functions/traced.{function}/calls"
    answered = platform.http.post(path, json={"input": arguments}, headers=headers).raise_for_status()
    found: dict[str, Any] = answered.json()
    return found


def root_of(collector: TraceCollector, call_id: str) -> CollectedSpan:
    return wait_until(lambda: collector.root_of(call_id), f"the collector has {call_id}")


def test_one_trace_goes_from_the_client_into_the_function(platform: Platform, collector: TraceCollector) -> None:
    """A cold call and the one that it makes: stages sum to each, and both functions see the trace that is exported."""
    outer = answer(platform, "outer", ASKED, number=7)
    root = root_of(collector, outer["id"])
    stages = collector.below(root)

    assert (root.trace_id, root.parent, root.name) == (TRACE, SPAN, "traced.outer")
    assert abs(sum(stage.ms for stage in stages) - root.ms) < 1.0
    assert root.attributes["faas.coldstart"] is True
    assert {"gateway", "start", "execute", "respond"} <= {stage.name for stage in stages}
    (start,) = [stage for stage in stages if stage.name == "start"]
    assert "import" in [step.name for step in collector.below(start)]
    (execute,) = [stage for stage in stages if stage.name == "execute"]
    seen = outer["output"]
    assert (seen["id"], seen["traceparent"]) == (outer["id"], f"00-{TRACE}-{execute.span_id}-01")

    nested = root_of(collector, seen["inner"]["id"])
    assert (nested.trace_id, nested.parent) == (TRACE, execute.span_id)
    assert seen["inner"]["traceparent"].split("-")[1] == TRACE
    assert {seen["inner"]["tracestate"], root.trace_state, nested.trace_state} == {"congo=t61rcWkgMzE"}


def test_a_retry_is_seen_in_its_calls_trace(platform: Platform, collector: TraceCollector) -> None:
    """A cold call that failed once: both of its executions, the first as an error, and stages that sum to the call."""
    done = answer(platform, "falters", ASKED, number=3)
    root = root_of(collector, done["id"])
    stages = collector.below(root)
    assert (root.trace_id, root.attributes["pilotlight.attempts"], done["output"]) == (TRACE, 2, 3)
    assert abs(sum(stage.ms for stage in stages) - root.ms) < 1.0
    executes = [stage for stage in stages if stage.name == "execute"]
    assert [each.attributes["pilotlight.attempt"] for each in executes] == [1, 2]
    assert [each.error for each in executes] == ["raised", ""]


def test_each_item_of_a_batch_has_its_own_trace(platform: Platform, collector: TraceCollector) -> None:
    """A function that runs them as one sees them all; those that asked for nothing begin one. The execution of one that
    is kept is linked to those of the others.
    """
    with ThreadPoolExecutor(4) as pool:
        headers: list[dict[str, str]] = [{}, ASKED, {}, {}]
        items = list(pool.map(lambda each: answer(platform, "many", each[1], number=each[0]), enumerate(headers)))
    for number, item in enumerate(items):
        trace = TRACE if headers[number] else own_trace_id(item["id"])
        assert (item["output"]["id"], item["output"]["number"]) == (item["id"], number)
        assert item["output"]["traceparent"].split("-")[1] == trace
    asked = items[1]
    root = root_of(collector, asked["id"])
    (execute,) = [stage for stage in collector.below(root) if stage.name == "execute"]
    beside = {own_trace_id(item["id"]) for item in items if item is not asked}
    assert len(execute.links) == root.attributes["pilotlight.batch_size"] - 1
    assert set(execute.links) <= beside


def test_a_slow_call_is_explained(platform: Platform, stranger: httpx.Client) -> None:
    """To its own tenant alone, over HTTP and on the command line. On a busy machine a call may spend its time on
    anything else: then another one is made.
    """

    def explained() -> tuple[str, str] | None:
        made: str = answer(platform, "slow", {}, nap=0.3)["id"]
        said = platform.cli("explain", made).stdout
        return (made, said) if "the function's own code" in said else None

    slow, said = wait_until(explained, "the function's own code took a notable part of a call")
    assert "traced.slow@v" in said
    found = platform.http.get("/v1/calls", params={"function": "traced.slow", "kept": "slow"}).json()
    assert found["calls"][0]["id"] == slow
    assert slow in platform.cli("calls", "--kept", "slow").stdout
    assert stranger.get(f"/v1/calls/{slow}/explanation").status_code == 404
    assert slow not in [call["id"] for call in stranger.get("/v1/calls").json()["calls"]]


def test_a_refused_call_is_explained_by_the_id_in_its_error(platform: Platform) -> None:
    """Though it never was a call."""
    refused = platform.http.post("/v1/functions/traced.nothing/calls", json={"input": {}})
    said = platform.http.get(f"/v1/calls/{refused.json()['request_id']}/explanation").json()
    assert said["code"] == "unknown_function"
    assert said["sentences"][0].startswith("The request failed with unknown_function")


def test_a_jobs_trace_is_linked_to_the_request_that_stored_it(platform: Platform, collector: TraceCollector) -> None:
    """It runs in a trace of its own, whenever that is."""
    job = platform.http.post(
        "/v1/functions/traced.inner/calls", json={"input": {}}, headers={"prefer": "respond-async", **ASKED}
    ).json()["id"]

    def kept_run() -> str:
        explained = platform.http.get(f"/v1/calls/{job}/explanation")
        found: str = explained.json()["id"] if explained.status_code == 200 else ""
        return found

    run = wait_until(kept_run, "the job has run, which is kept")
    root = root_of(collector, run)
    assert (root.trace_id, root.links, root.attributes["faas.trigger"]) == (own_trace_id(run), (TRACE,), "pubsub")


@pytest.mark.long
def test_a_level_that_is_broken_is_told_of_once(platform: Platform) -> None:
    """By the home of the function, within two of its looks; whoever asks for that kind alone gets it."""
    for _ in range(12):
        answer(platform, "slow", {}, nap=0.1)

    def told() -> list[dict[str, Any]]:
        asked = {"kind": "slo", "function": "traced.slow"}
        events: list[dict[str, Any]] = platform.http.get("/v1/events", params=asked).raise_for_status().json()["events"]
        return events

    wait_until(told, "the broken level is told of", 150.0)
    (event,) = told()
    assert (event["kind"], event["facts"]["slo"], event["facts"]["target_ms"]) == ("slo.broken", "p95_ms", 50)
    assert event["says"].startswith("traced.slow breaks its level p95_ms=50: ")
