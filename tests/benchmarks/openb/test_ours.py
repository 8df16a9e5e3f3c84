"""The policy on arrays, against the product's own answers for one place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.openb.cluster import Cluster
from benchmarks.openb.ours import Ours, demand
from benchmarks.openb.trace import Kind, Trace
from pilotlight_placement.fragmentation.share_fragmentation import FreeCapacity, TypicalTask, outlook
from tests.benchmarks.openb.makers import kind, scattered, tiny


def room(cluster: Cluster, row: int) -> FreeCapacity:
    return FreeCapacity(
        model=cluster.models[cluster.model[row]],
        cpu=int(cluster.cpu[row]),
        free=tuple(int(milli) for milli in cluster.free[row]),
    )


def task(wanted: Kind) -> TypicalTask:
    return TypicalTask(weight=1, cpu=wanted.cpu, milli=wanted.milli, count=wanted.count, models=wanted.models)


@pytest.mark.parametrize("seed", range(20))
def test_arrays_and_the_product_agree(tmp_path: Path, seed: int) -> None:
    """Cost and place of every kind of task on every node that it fits, on random rooms."""
    trace = tiny(tmp_path)
    cluster = scattered(trace, seed)
    seen = outlook(trace.typical, cluster.models)
    ours = Ours(trace, cluster)
    for wanted in trace.kinds:
        rows = np.flatnonzero(cluster.fits(wanted, np.arange(3)))
        lost, other, gpus = ours.costs(wanted, rows)
        for place, row in enumerate(rows.tolist()):
            product = seen.costs(room(cluster, row), task(wanted))
            assert lost[place] + other[place] == pytest.approx(min(product), abs=1e-6)
            if wanted.shares:
                fitting = np.flatnonzero(cluster.free[row] >= wanted.milli).tolist()
                assert product[fitting.index(gpus[place])] == pytest.approx(min(product), abs=1e-6)


def test_the_cheapest_node_is_chosen_and_none_where_none_fits(tmp_path: Path) -> None:
    """Every choice fits, until nothing does."""
    trace = tiny(tmp_path)
    cluster = Cluster(trace, range(3))
    ours = Ours(trace, cluster)
    number = trace.kinds.index(kind(cpu=11_000, memory=16_000))
    placed = 0
    while (choice := ours.choose(number)) is not None:
        cluster.take(trace.kinds[number], *choice)
        placed += 1
    assert placed == 8 + 2 + 2
    assert not cluster.fits(trace.kinds[number], np.arange(3)).any()


def test_demand_is_counted_by_accepted_models(tmp_path: Path) -> None:
    """Typical milli-GPU of each set of models; tasks without GPU claim none."""
    trace: Trace = tiny(tmp_path)
    found = demand(trace)
    assert set(found) == {frozenset(), frozenset({"T4", "V100"})} | ({frozenset({"G2"})} & set(found))
    assert sum(found.values()) == pytest.approx(sum(t.weight * t.count * t.milli for t in trace.typical))
