"""What an agent's metrics tell of engines."""

from __future__ import annotations

from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_runtime.node.engine_metrics import EngineMetrics


def values(metrics: EngineMetrics, **reports: EngineReport) -> dict[str, float]:
    """Samples by name and label."""
    return {
        ".".join((sample.name.removeprefix("pilotlight_agent_engine_"), *sample.labels.values())): sample.value
        for metric in metrics.collect(reports.items())
        for sample in metric.samples
    }


def test_counters_rise_over_containers_that_come_and_go() -> None:
    metrics = EngineMetrics()
    values(metrics, a=EngineReport(prefill_tokens=10, decode_tokens=5))
    values(metrics, a=EngineReport(prefill_tokens=30, decode_tokens=9), b=EngineReport(decode_tokens=1))
    told = values(metrics, b=EngineReport(decode_tokens=3, prefix_tokens=7))

    assert (told["tokens_total.prefill"], told["tokens_total.decode"], told["tokens_total.stored"]) == (30, 12, 7)


def test_calls_are_summed_and_the_fullest_room_is_told() -> None:
    full = EngineReport(kv_used=9, kv_total=10, running=3, waiting=1)
    told = values(EngineMetrics(), a=full, b=EngineReport(kv_used=1, kv_total=10, running=2))

    assert (told["calls.running"], told["calls.waiting"], told["kv_used_ratio"]) == (5, 1, 0.9)
    assert values(EngineMetrics())["kv_used_ratio"] == 0


def test_the_pace_is_that_of_the_slowest_engine() -> None:
    quick, slow = EngineReport(first_token_ms=10, inter_token_ms=5), EngineReport(first_token_ms=500, inter_token_ms=2)
    told = values(EngineMetrics(), a=quick, b=slow)

    assert (told["time_to_first_token_seconds"], told["inter_token_seconds"]) == (0.5, 0.005)
