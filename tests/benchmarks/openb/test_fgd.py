"""F from tables, against its definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.openb.baselines import Best
from benchmarks.openb.cluster import Cluster
from benchmarks.openb.fgd import Fragmentation, fgd
from benchmarks.openb.trace import Trace
from tests.benchmarks.openb.makers import scattered, tiny


def stranded(trace: Trace, cluster: Cluster, row: int) -> float:
    """F of a node, as the paper states it."""
    free = [int(milli) for milli in cluster.free[row]]
    found = 0.0
    for task in trace.typical:
        enough = sum(milli >= task.milli for milli in free) >= task.count
        usable = task.may_use(cluster.models[cluster.model[row]]) and cluster.cpu[row] >= task.cpu
        fits = task.count and enough and usable
        found += task.weight * sum(milli for milli in free if not fits or milli < task.milli)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_tables_give_the_defined_fragmentation(tmp_path: Path, seed: int) -> None:
    """On random rooms, but for a constant part of whole GPUs that tasks of several could never use."""
    trace = tiny(tmp_path)
    cluster = scattered(trace, seed)
    found = Fragmentation(trace, cluster.models).of(cluster.model, cluster.cpu, cluster.free)
    assert found.tolist() == pytest.approx([stranded(trace, cluster, row) for row in range(3)])


@pytest.mark.parametrize("milli", [320, 470])
def test_a_share_on_each_gpu_gives_the_fragmentation_of_what_is_left(tmp_path: Path, milli: int) -> None:
    """One array for all GPUs of a node, against one node at a time."""
    trace = tiny(tmp_path)
    cluster = scattered(trace, 3)
    fragmentation = Fragmentation(trace, cluster.models)
    found = fragmentation.shared(cluster.model, cluster.cpu, cluster.free, milli)
    for row, gpu in np.argwhere(cluster.free >= milli):
        before = cluster.free[row, gpu]
        cluster.free[row, gpu] -= milli
        assert found[row, gpu] == pytest.approx(stranded(trace, cluster, row))
        cluster.free[row, gpu] = before


def test_nothing_stranded_scores_fifty(tmp_path: Path) -> None:
    """A task without GPU that changes nothing scores 50 everywhere, so the first node takes it."""
    trace = tiny(tmp_path)
    cluster = Cluster(trace, range(3))
    number = next(n for n, kind in enumerate(trace.kinds) if kind.cpu == 100)
    scores, _ = fgd(trace, cluster)(cluster, number, np.arange(3))
    assert scores.tolist() == [50.0, 50.0, 50.0]
    assert Best(trace, cluster, fgd(trace, cluster)).choose(number) == (0, -1)
