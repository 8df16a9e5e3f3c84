"""Keys in metrics."""

from __future__ import annotations

from pilotlight_gateway.idempotency.keyed_calls import KeyStatistics
from pilotlight_gateway.metrics.key_metrics import key_counts


def test_requests_are_counted_by_what_their_key_meant() -> None:
    """One family, three results."""
    (family,) = key_counts(KeyStatistics(first=3, replayed=2, refused=1))

    assert {sample.labels["result"]: sample.value for sample in family.samples} == {
        "first": 3, "replayed": 2, "refused": 1,
    }  # fmt: skip
