"""How often models were called."""

from __future__ import annotations

from pilotlight_gateway.http.inference.inference_counts import CountedModel, InferenceCounts

MINE, OTHERS = CountedModel("acme", "shop.f", "1"), CountedModel("beta", "shop.f", "1")


def test_calls_are_counted_by_tenant_and_model() -> None:
    """Ended well or not, and where their time went."""
    counts = InferenceCounts(wall=lambda: 12.5)
    counts.note_success(MINE, 10.0, {"queue": 1.0, "start": 2.0, "execute": 4.0, "gateway": 0.5, "respond": 0.25})
    counts.note_failure(MINE, 3.0)
    counts.note_failure(OTHERS, 1.0)

    ((name, found),) = counts.of_tenant("acme")
    assert name == MINE
    assert (found.succeeded, found.succeeded_ns, found.failed, found.failed_ns) == (1, 10_000_000, 1, 3_000_000)
    assert (found.queue_ns, found.compute_ns, found.input_ns, found.output_ns) == (3e6, 4e6, 5e5, 2.5e5)
    assert found.last_ms == 12_500


def test_nobody_is_counted_by_being_looked_at() -> None:
    """And a model that was not called has nothing."""
    counts = InferenceCounts()
    assert counts.of_model(MINE).succeeded == 0
    assert counts.of_tenant("acme") == []
