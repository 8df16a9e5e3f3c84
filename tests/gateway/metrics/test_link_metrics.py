"""What is shown of links, and of the ways that calls take."""

from __future__ import annotations

from pilotlight_gateway.metrics.link_metrics import link_metrics


def test_calls_are_shown_by_their_way_and_links_by_whom_they_are_to() -> None:
    """Each way from the start."""
    links = {"agent": {"machine": 7, "hosts": 5}, "gateway": {"hosts": 0}}
    sent, standing = link_metrics({"machine": 1, "hosts": 2, "bus": 3}, links)
    assert {(*sample.labels.values(),): sample.value for sample in sent.samples} == {
        ("machine",): 1, ("hosts",): 2, ("bus",): 3,
    }  # fmt: skip
    assert {(*sample.labels.values(),): sample.value for sample in standing.samples} == {
        ("agent", "machine"): 7, ("agent", "hosts"): 5, ("gateway", "hosts"): 0,
    }  # fmt: skip
