"""The names that tenants and users of language models chart are there, and bounded."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_text

from pilotlight_core.model.messages.scheduling import TalliesTold
from pilotlight_core.model.messages.seeing.tallies import JOBS, CallTotals, GatewayTally, ToldTally
from pilotlight_gateway.metrics.tenant_metrics import MOST_FUNCTIONS, TenantMetrics
from pilotlight_gateway.tally.tally_totals import GAP_SECONDS

VLLM = {
    "vllm:num_requests_running": "gauge",
    "vllm:num_requests_waiting": "gauge",
    "vllm:kv_cache_usage_perc": "gauge",
    "vllm:time_to_first_token_seconds": "histogram",
    "vllm:inter_token_latency_seconds": "histogram",
    "vllm:e2e_request_latency_seconds": "histogram",
    "vllm:prompt_tokens": "counter",
    "vllm:generation_tokens": "counter",
}
"""As vLLM 0.33 calls them, and the Gateway API Inference Extension's model server protocol reads the gauges."""


def told(gateway: str, **functions: CallTotals) -> TalliesTold:
    parts = tuple(ToldTally(function=f"acme:chat.{name}", totals=totals) for name, totals in functions.items())
    return TalliesTold(parts=parts, own=GatewayTally(gateway=f"gw-{gateway}", process=gateway))


def container(function: str = "model", state: str = "ready", **engine: Any) -> dict[str, Any]:
    fields = {"running": 0, "waiting": 0, "kv_used": 0, "kv_total": 0} | engine
    return {"app": "chat", "function": function, "state": state, "engine": fields if engine else None}


def families(metrics: TenantMetrics) -> dict[str, Any]:
    read: Any = read_text
    return {family.name: family for family in read(metrics.exposition("")[0].decode())}


def test_an_engine_is_charted_by_the_names_of_vllm() -> None:
    """Its containers' words together, and the times and tokens of its calls."""
    gaps = [0] * (len(GAP_SECONDS) + 1)
    gaps[3] = 7
    totals = CallTotals(ended=5, units={"prompt_tokens": 50, "completion_tokens": 80}, gaps=tuple(gaps), gaps_s=0.05)
    containers = [
        container(running=3, waiting=1, kv_used=50, kv_total=100), container(running=2, kv_used=100, kv_total=100),
        container("plain"),
    ]  # fmt: skip
    shown = families(TenantMetrics([told("one", model=totals, plain=CallTotals(ended=1))], containers))
    assert {name: shown[name].type for name in VLLM} == VLLM
    samples = {
        (each.name, each.labels["model_name"], each.labels.get("le")): each.value
        for name in VLLM
        for each in shown[name].samples
    }
    assert samples["vllm:num_requests_running", "chat.model", None] == 5
    assert samples["vllm:num_requests_waiting", "chat.model", None] == 1
    assert samples["vllm:kv_cache_usage_perc", "chat.model", None] == 0.75
    assert samples["vllm:inter_token_latency_seconds_count", "chat.model", None] == 7
    assert samples["vllm:generation_tokens_total", "chat.model", None] == 80
    assert not any(model == "chat.plain" for _, model, _ in samples)


def test_gateways_have_labels_of_their_own() -> None:
    """Nothing is added up that a restart would make fall. They name runs of gateways, and no gateway."""
    shown = families(TenantMetrics([told("one", f=CallTotals(ended=3)), told("two", f=CallTotals(ended=4))], []))
    found = {each.labels["gateway"]: each.value for each in shown["pilotlight_function_calls"].samples}
    assert found == {"one": 3, "two": 4}
    before = [TalliesTold(parts=told("", f=CallTotals(ended=1)).parts, own=GatewayTally(gateway="gw")) for _ in "ab"]
    shown = families(TenantMetrics(before, []))
    assert len({each.labels["gateway"] for each in shown["pilotlight_function_calls"].samples} - {"gw"}) == 2


def test_runs_of_jobs_have_metrics_of_their_own() -> None:
    """Calls whose callers wait are in none of them, nor the other way round."""
    parts = (
        ToldTally(function="acme:chat.f", totals=CallTotals(ended=3, gpu_ms=1_000.0)),
        ToldTally(function="acme:chat.f", arm=JOBS, totals=CallTotals(ended=9, failures={"oom": 2}, gpu_ms=4_000.0)),
    )
    shown = families(TenantMetrics([TalliesTold(parts=parts, own=GatewayTally(process="one"))], []))
    found = {
        name: {each.labels.get("code", ""): each.value for each in shown[f"pilotlight_function_{name}"].samples}
        for name in ("calls", "job_runs", "gpu_seconds", "job_gpu_seconds")
    }
    assert found == {
        "calls": {"": 3}, "job_runs": {"": 9, "oom": 2}, "gpu_seconds": {"": 1}, "job_gpu_seconds": {"": 4}
    }  # fmt: skip


def test_ten_thousand_functions_have_no_more_series_than_the_bound() -> None:
    """Those that were called first have names; the others are one."""
    functions = {f"f{number}": CallTotals(ended=number + 1) for number in range(10_000)}
    containers = [container(f"f{number}") for number in range(1_000)]
    shown = families(TenantMetrics([told("one", **functions)], containers))
    calls = {each.labels["function"]: each.value for each in shown["pilotlight_function_calls"].samples}
    assert len(calls) == MOST_FUNCTIONS + 1
    assert sum(calls.values()) == sum(range(1, 10_001))
    assert calls["chat.f0"] == 1
    assert "chat.f9999" not in calls
    names = {each.labels["function"] for each in shown["pilotlight_function_containers"].samples}
    assert len(names | set(calls)) <= MOST_FUNCTIONS + 1
    assert sum(len(family.samples) for family in shown.values()) < MOST_FUNCTIONS * 40


@given(st.lists(st.integers(0, 2 * MOST_FUNCTIONS), min_size=1, max_size=300), st.integers(1, 40))
@settings(max_examples=30, deadline=None)
def test_no_counter_ever_falls(calls: list[int], step: int) -> None:
    """However the functions overtake each other: a chart of a rate would show what never was."""
    counted: dict[str, int] = {}
    before: dict[str, float] = {}
    for first in range(0, len(calls), step):
        for number in calls[first : first + step]:
            counted[f"f{number}"] = counted.get(f"f{number}", 0) + 1
        one = told("one", **{name: CallTotals(ended=count) for name, count in counted.items()})
        shown = families(TenantMetrics([one], []))["pilotlight_function_calls"].samples
        after = {each.labels["function"]: each.value for each in shown}
        assert all(after[name] >= value for name, value in before.items())
        before = after


def test_openmetrics_is_what_its_own_parser_reads() -> None:
    body, media_type = TenantMetrics([told("one", f=CallTotals(ended=3))], []).exposition(
        "application/openmetrics-text; version=1.0.0,text/plain;q=0.5"
    )
    read: Any = read_open
    assert media_type.startswith("application/openmetrics-text")
    assert "pilotlight_function_calls" in {family.name for family in read(body.decode())}
