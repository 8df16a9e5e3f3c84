"""The record of a batch, and its transitions."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pilotlight_core.model.ids import parse_call_id
from pilotlight_core.model.records.batches import (
    BatchRecord,
    BatchState,
    ItemCounts,
    cancel_batch,
    finished,
    job_of,
    resume_batch,
)
from pilotlight_core.model.records.jobs import BlobRef


def record(**more: Any) -> BatchRecord:
    fields: dict[str, Any] = {
        "id": "batch_1", "tenant": "acme", "function": "acme:shop.rank", "version": "ver_1", "ref": "shop.rank@v1",
        "created_at": 100.0, "life_s": 60.0, "expires_at": 160.0, "keep_s": 10.0, "total": 5,
        "chunks": BlobRef(sha256="00", size=1),
    }  # fmt: skip
    return BatchRecord(**fields | more)


def test_a_batch_is_cancelled_once_and_then_over() -> None:
    """What runs of it ends by itself first."""
    cancelling = cancel_batch(record())
    assert cancelling.state is BatchState.CANCELLING
    assert not cancelling.state.over
    assert cancel_batch(cancelling) is cancelling

    cancelled = finished(cancelling, 150.0)
    assert (cancelled.state, cancelled.ended_at) == (BatchState.CANCELLED, 150.0)
    assert cancelled.state.over


def test_a_batch_whose_items_have_all_ended_is_completed() -> None:
    """And nothing changes it any more."""
    done = finished(record(), 120.0)
    assert done.state is BatchState.COMPLETED
    assert cancel_batch(done) is done
    assert resume_batch(done, 130.0) is done


@pytest.mark.parametrize("state", [BatchState.CANCELLED, BatchState.CANCELLING])
def test_a_resumed_batch_begins_anew_with_a_new_life(state: BatchState) -> None:
    """Its counts follow from its jobs, so they are counted again."""
    counts = ItemCounts(succeeded=2, cancelled=1)
    resumed = resume_batch(record(state=state, counts=counts, settled_chunks=1, submitted=3, ended_at=150.0), 200.0)

    assert resumed == record(resumes=1, expires_at=260.0)


def test_counts_add_up() -> None:
    """One more of a state, and those of two chunks."""
    counts = ItemCounts(succeeded=1).plus("failed").plus("failed").add(ItemCounts(cancelled=3, expired=4))

    assert counts == ItemCounts(succeeded=1, failed=2, cancelled=3, expired=4)
    assert counts.ended == 10


def test_the_job_of_an_item_follows_from_its_place() -> None:
    """Whoever drives the batch next finds what was submitted already."""
    first = job_of("eu", "acme", "batch_1", 0)

    assert first == job_of("eu", "acme", "batch_1", 0)
    elsewhere = (("acme", "batch_1", 1), ("acme", "batch_2", 0), ("other", "batch_1", 0))
    others = {job_of("eu", tenant, batch, index) for tenant, batch, index in elsewhere}
    assert first not in others
    assert len(others) == 3
    assert re.match("call_", first)
    assert parse_call_id(first)
