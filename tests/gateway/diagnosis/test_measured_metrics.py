"""What promises are about, as it is."""

from __future__ import annotations

from pilotlight_gateway.diagnosis.diagnosis_window import FlowFacts
from pilotlight_gateway.diagnosis.measured_metrics import measured_metrics
from tests.gateway.diagnosis.windows import sample, window


def test_the_metrics_of_a_window_are_parts_of_what_came() -> None:
    metrics = measured_metrics(window(arrivals=2_000, failed={"rate_limited": 500, "load_failed": 100}))

    assert (metrics["limited_part"], metrics["failing_part"]) == (0.25, 0.05)
    assert "tokens_per_s" not in metrics


def test_the_part_of_starts_is_of_all_time_of_calls() -> None:
    metrics = measured_metrics(window((sample(900.0, execute=50.0), sample(100.0, start=450.0, execute=50.0))))

    assert round(metrics["start_part"], 3) == 0.474


def test_the_calls_that_others_slow_down_have_a_mean_of_their_own() -> None:
    flows = (FlowFacts(tenant="mouse", slowdown=8.0, held_part=0.1, mean_ms=480.0),)

    assert measured_metrics(window(flows=flows))["slowed_mean_ms"] == 480.0
    assert "slowed_mean_ms" not in measured_metrics(window(flows=flows), "elephant")
