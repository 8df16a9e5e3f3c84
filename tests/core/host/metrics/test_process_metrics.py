"""The metrics of a process."""

from __future__ import annotations

from pilotlight_core.host.metrics import ProcessMetrics
from pilotlight_core.host.metrics.metric_families import gauge


def test_sources_are_asked_at_each_scrape() -> None:
    """What is shown is how things are, in the order of the sources."""
    scrapes = 0
    metrics = ProcessMetrics(lambda: [gauge("first", "First.", scrapes)], lambda: [gauge("second", "Second.", 7)])

    for scrapes in (1, 2):
        lines = metrics.exposition().decode().splitlines()
        assert [line for line in lines if not line.startswith("#")] == [f"first {scrapes}.0", "second 7.0"]
    assert "# HELP first First." in lines
