"""Connections in metrics."""

from __future__ import annotations

from pilotlight_gateway.limits.connections import ClientConnections
from pilotlight_gateway.metrics.connection_metrics import connection_counts


def test_connections_are_shown_by_whether_they_are_known_and_why_they_ended() -> None:
    """Three families."""
    counted = ClientConnections(open=5, known=2, refused={"connections": 7}, closed={"no_key": 1})

    shown = {
        (sample.name, *sample.labels.values()): sample.value
        for family in connection_counts(counted)
        for sample in family.samples
    }

    assert shown == {
        ("pilotlight_connections", "true"): 2,
        ("pilotlight_connections", "false"): 3,
        ("pilotlight_connections_refused_total", "connections"): 7,
        ("pilotlight_connections_closed_total", "no_key"): 1,
    }
