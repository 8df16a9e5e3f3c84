"""The published protocol on a small trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.openb.trace import read
from benchmarks.openb.workload import INFLATION, workload
from tests.benchmarks.openb.makers import PODS, tiny, write


def test_a_seed_is_an_order(tmp_path: Path) -> None:
    """The same seed gives the same workload; another one does not."""
    trace = tiny(tmp_path)
    one, same, other = workload(trace, 42), workload(trace, 42), workload(trace, 43)
    assert one.arrivals.tolist() == same.arrivals.tolist() != other.arrivals.tolist()
    assert one.nodes == same.nodes
    assert sorted(one.nodes) == [0, 1, 2]


@pytest.mark.parametrize("pods", [PODS[:20], PODS * 3])
def test_demand_is_inflated_or_pruned_to_130_percent(tmp_path: Path, pods: list[tuple[object, ...]]) -> None:
    """A small trace grows by copies of its tasks, a large one loses some, to within one task."""
    write(tmp_path, pods=pods)
    trace = read(tmp_path, "tiny")
    demand = sum(trace.kinds[number].gpu for number in workload(trace, 42).arrivals.tolist())
    assert demand == pytest.approx(INFLATION * trace.capacity, abs=2000)


def test_all_tasks_of_a_small_trace_come_first(tmp_path: Path) -> None:
    """The copies follow after every task has come once."""
    write(tmp_path, pods=PODS[:20])
    trace = read(tmp_path, "tiny")
    first = workload(trace, 42).arrivals.tolist()[: len(trace.pods)]
    assert sorted(first) == sorted(trace.pods)
