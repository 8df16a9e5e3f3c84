"""Counting is cheap, and what is scraped adds up."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from pilotlight_core.host.metrics import ProcessMetrics
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics


def test_what_is_counted_is_scraped() -> None:
    """In seconds, whatever it was counted in."""
    metrics = GatewayMetrics()
    metrics.call_ended({"queue": 250.0, "execute": 750.0}, 1000.0, {"bind": 20.0, "load": 80.0})
    metrics.call_failed("queue_full", 2000.0)

    shown = ProcessMetrics(metrics.collect).exposition().decode()
    families = {family.name: family for family in text_string_to_metric_families(shown)}
    samples = {(sample.name, *sample.labels.values()): sample.value for f in families.values() for sample in f.samples}
    assert samples["pilotlight_call_stage_seconds_sum", "queue"] == 0.25
    assert samples["pilotlight_call_stage_seconds_count", "batch_wait"] == 0
    assert samples["pilotlight_call_duration_seconds_sum", "ok"] == 1.0
    assert samples["pilotlight_call_duration_seconds_sum", "error"] == 2.0
    assert samples["pilotlight_cold_start_seconds_sum",] == 0.1
    assert samples["pilotlight_calls_total", "queue_full", "error"] == 1
