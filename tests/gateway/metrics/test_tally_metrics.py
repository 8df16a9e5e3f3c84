"""What tallies add up of all tenants is scraped."""

from __future__ import annotations

from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pilotlight_core.host.metrics import ProcessMetrics
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.metrics.tally_metrics import tally_counts
from pilotlight_gateway.tally.job_tallies import job_tallies
from pilotlight_gateway.tally.tallies import Tallies
from tests.gateway.tally.tallied_calls import WallClock, end, version


def test_batches_tokens_and_retries_are_counted_without_a_name() -> None:
    tallies = Tallies(WallClock())
    end(tallies, version(), units={"completion_tokens": 9, "images": 2}, attempts=3)
    tallies.fold()
    read: Any = text_string_to_metric_families
    runs = job_tallies(WallClock())
    end(runs, version())
    runs.fold()
    shown = ProcessMetrics(lambda: tally_counts(tallies, runs)).render("application/openmetrics-text")[0].decode()
    found = {(each.name, *each.labels.values()): each.value for family in read(shown) for each in family.samples}
    assert found["pilotlight_batch_size_sum",] == 4
    assert found["pilotlight_tokens_total", "completion"] == 9
    assert found["pilotlight_tokens_total", "prompt"] == 0
    assert found["pilotlight_retries_total",] == 2
    assert found["pilotlight_tally_functions",] == 2
    assert "acme" not in shown


def test_a_duration_has_the_trace_of_a_call_that_is_kept() -> None:
    """The last one of its bucket, for whoever reads OpenMetrics."""
    metrics = GatewayMetrics()
    metrics.call_ended({}, 320.0, None)
    metrics.note_exemplar(320.0, "4bf92f3577b34da6a3ce929d0e0e4736", 1_790_000_000.5)
    process, read = ProcessMetrics(metrics.collect), text_string_to_metric_families
    families: Any = read(process.render("application/openmetrics-text")[0].decode())  # type: ignore[no-untyped-call]
    (shown,) = [
        each.exemplar
        for family in families
        for each in family.samples
        if family.name == "pilotlight_call_duration_seconds" and each.exemplar is not None
    ]
    assert (shown.labels["trace_id"], shown.value) == ("4bf92f3577b34da6a3ce929d0e0e4736", 0.32)
    assert b"4bf92f" not in process.exposition()
