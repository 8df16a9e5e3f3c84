"""The simulated fleet: what fits, and what a task takes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.openb.cluster import Cluster, Memo
from tests.benchmarks.openb.makers import kind, tiny


def test_fits_looks_at_cores_memory_model_and_devices(tmp_path: Path) -> None:
    """Each need alone keeps a task off a node."""
    cluster = Cluster(tiny(tmp_path), range(3))
    rows = np.arange(3)
    assert cluster.fits(kind(), rows).tolist() == [True, True, True]
    assert cluster.fits(kind(cpu=64_001), rows).tolist() == [True, False, False]
    assert cluster.fits(kind(memory=150_000), rows).tolist() == [True, True, False]
    assert cluster.fits(kind(spec="T4|P100"), rows).tolist() == [False, True, False]
    assert cluster.fits(kind(count=4), rows).tolist() == [True, False, True]
    assert cluster.fits(kind(milli=0, count=0, spec="P100"), rows).tolist() == [True, True, True]


def test_a_task_takes_the_gpu_that_was_chosen_or_the_first_whole_ones(tmp_path: Path) -> None:
    """A share goes onto its GPU; two whole ones are the first two that are free."""
    cluster = Cluster(tiny(tmp_path), range(3))
    cluster.take(kind(milli=300), 2, 1)
    cluster.take(kind(count=2), 2, -1)
    assert cluster.free[2].tolist() == [0, 700, 0, 1000, 0, 0, 0, 0]
    assert cluster.cpu[2] == 30_000
    assert cluster.used == 2300
    assert cluster.version.tolist() == [0, 0, 2]


def test_a_memo_asks_again_for_what_has_changed(tmp_path: Path) -> None:
    """Every node at first, none then, and those that got a task since."""
    cluster = Cluster(tiny(tmp_path), range(3))
    memo = Memo(cluster, columns=1)
    assert memo.stale(0).tolist() == [0, 1, 2]
    assert memo.stale(0).tolist() == []
    cluster.take(kind(), 1, -1)
    assert memo.stale(0).tolist() == [1]
    assert memo.stale(1).tolist() == [0, 1, 2]
