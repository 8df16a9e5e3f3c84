"""The simple policies on nodes whose scores can be computed by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.openb import baselines
from benchmarks.openb.baselines import Best, Random, Score
from benchmarks.openb.cluster import Cluster
from benchmarks.openb.gorand import GoRandom
from benchmarks.openb.trace import Kind, Trace
from tests.benchmarks.openb.makers import kind, tiny

ROWS = np.arange(3)


def with_kinds(trace: Trace, *kinds: Kind) -> Trace:
    return replace(trace, kinds=kinds)


def scores(score: Score, cluster: Cluster) -> list[float]:
    return [float(value) for value in score(cluster, 0, ROWS)[0]]


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return with_kinds(tiny(tmp_path), kind(cpu=16_000, milli=500), kind(cpu=1000, milli=1000, count=2))


def test_dot_product_and_best_fit_by_hand(trace: Trace) -> None:
    """Free room on 96 cores and 8 GPUs, 64 and 2, 32 and 4; the task takes 16 cores and half a GPU."""
    cluster = Cluster(trace, range(3))
    assert scores(baselines.dot_product(trace), cluster) == [92.0, 96.0, 96.0]
    assert scores(baselines.best_fit(trace), cluster) == [21.0, 71.0, 71.0]


def test_clustering_keeps_a_class_together(trace: Trace) -> None:
    """75 beside its own class alone, 50 in mixed company, 25 on an idle node, 0 beside others; and fuller is better."""
    cluster = Cluster(trace, range(3))
    assert scores(baselines.clustering(trace), cluster) == [25 + 0, 25 + 18, 25 + 12]
    cluster.take(trace.kinds[0], 0, 0)
    cluster.take(trace.kinds[1], 1, -1)
    assert scores(baselines.clustering(trace), cluster) == [75 + 1, 0 + 25, 25 + 12]
    cluster.take(trace.kinds[1], 0, -1)
    assert scores(baselines.clustering(trace), cluster)[0] == 50 + 7


def test_packing_prefers_a_shared_gpu_then_a_used_node(trace: Trace) -> None:
    """100 less a tenth of what is free there; 49 for a whole GPU on a used node; 33 less its GPUs on an idle one."""
    cluster = Cluster(trace, range(3))
    assert scores(baselines.packing(trace), cluster) == [25.0, 31.0, 29.0]
    cluster.take(trace.kinds[0], 0, 3)
    cluster.take(kind(), 1, -1)
    assert scores(baselines.packing(trace), cluster) == [95.0, 49.0, 29.0]


def test_a_share_goes_onto_the_tightest_gpu(trace: Trace) -> None:
    """The least room that still holds it; the first among equals."""
    cluster = Cluster(trace, range(3))
    cluster.free[0, :4] = [400, 700, 600, 600]
    assert baselines.tightest(cluster, 500, ROWS).tolist() == [2, 0, 0]


def test_the_first_node_wins_a_tie_and_nothing_is_chosen_where_nothing_fits(trace: Trace) -> None:
    """Best takes the highest score, in the order of nodes; a task that fits nowhere has no place."""
    huge = with_kinds(trace, trace.kinds[0], kind(cpu=500_000))
    cluster = Cluster(huge, range(3))
    policy = Best(huge, cluster, baselines.best_fit(huge))
    assert policy.choose(0) == (1, 0)
    assert policy.choose(1) is None


def test_random_takes_only_what_fits(trace: Trace) -> None:
    """Any node and GPU with room, in the draws of its generator."""
    cluster = Cluster(trace, range(3))
    cluster.free[:, 1:] = 0
    policy = Random(trace, cluster, GoRandom(42))
    found = {policy.choose(0) for _ in range(50)}
    assert found == {(0, 0), (1, 0), (2, 0)}
    assert policy.choose(1) is None
