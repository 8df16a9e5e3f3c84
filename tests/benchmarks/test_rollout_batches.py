"""The benchmark of batches: those that wait together run together, and a version is compared with its twin."""

from __future__ import annotations

from benchmarks.rollout_batches import LARGEST_BATCH, SETTINGS, WAIT_S, Task, batch_of, is_called_back


def test_a_batch_begins_when_it_is_full_or_its_first_call_has_waited() -> None:
    """What waits for a busy container grows meanwhile."""
    arrivals = [0.0, 0.01, 0.02, 0.5]
    assert batch_of(arrivals, 0, free_at=0.0) == (2, WAIT_S)
    assert batch_of(arrivals, 0, free_at=0.1) == (3, 0.1)
    assert batch_of([0.0] * 20, 0, free_at=0.0) == (LARGEST_BATCH, 0.0)


def test_without_a_twin_an_equal_version_is_called_back() -> None:
    """Its batches are smaller, and so its calls dearer."""
    found = {one.name: is_called_back(Task(one, 1_500, 0.02, (1,))) for one in SETTINGS if one.tolerance is None}
    assert found == {"equal": False, "unlearnt": False, "without_twin": True}
