"""The metrics of a process."""

from __future__ import annotations

from pilotlight_core.host.metrics import ProcessMetrics
from pilotlight_core.host.metrics.metric_families import gauge


async def test_sources_are_asked_at_each_scrape_after_the_refresh() -> None:
    """What is shown is how things are, in the order of the sources."""
    read: list[int] = []

    async def refresh() -> None:
        read.append(len(read))

    metrics = ProcessMetrics(
        lambda: [gauge("first", "First.", len(read))], lambda: [gauge("second", "Second.", 7)], refresh=refresh
    )

    assert read == []
    for scrapes in (1, 2):
        lines = (await metrics.scrape()).decode().splitlines()
        assert [line for line in lines if not line.startswith("#")] == [f"first {scrapes}.0", "second 7.0"]
    assert "# HELP first First." in lines
