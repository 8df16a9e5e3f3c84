"""What is shown of links, and of the ways that calls take."""

from __future__ import annotations

from pilotlight_gateway.metrics.link_metrics import link_metrics


class Links:
    """As many of each way as its name has letters."""

    def standing(self, way: str) -> int:
        return len(way)


def test_calls_are_shown_by_their_way_and_links_by_whom_they_are_to() -> None:
    """Each way from the start."""
    sent, standing = link_metrics({"machine": 1, "hosts": 2, "bus": 3}, {"agent": Links(), "gateway": Links()})
    assert {(*sample.labels.values(),): sample.value for sample in sent.samples} == {
        ("machine",): 1, ("hosts",): 2, ("bus",): 3,
    }  # fmt: skip
    assert {(*sample.labels.values(),): sample.value for sample in standing.samples} == {
        ("agent", "machine"): 7, ("agent", "hosts"): 5, ("gateway", "machine"): 7, ("gateway", "hosts"): 5,
    }  # fmt: skip
