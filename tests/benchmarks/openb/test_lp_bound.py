"""What no policy can exceed, where it can be told by hand, and against every policy on a small trace."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.openb.lp_bound import asked, best_pattern, lp_bound, machine_kinds, most
from benchmarks.openb.run import POLICIES, run
from benchmarks.openb.trace import Kind, read
from tests.benchmarks.openb.makers import kind, tiny, write


def bound(folder: Path, tasks: dict[Kind, int], nodes: list[tuple[object, ...]]) -> float:
    """GPUs that can be given away of some nodes."""
    write(folder, nodes=nodes)
    return most(read(folder, "tiny"), Counter(tasks))


def test_sizes_that_leave_useless_rests_bound_what_is_given(tmp_path: Path) -> None:
    """Of two GPUs with tasks of 0.6 two can run, however many come."""
    assert bound(tmp_path, {kind(milli=600): 9}, [("n", 96_000, 9_000, 2, "G2")]) == pytest.approx(1.2, abs=1e-3)


def test_cores_memory_and_models_bound_it(tmp_path: Path) -> None:
    """Each of them, on nodes with enough GPUs."""
    node = ("n", 8_000, 4_000, 4, "G2")

    assert bound(tmp_path, {kind(cpu=4_000): 9}, [node]) == pytest.approx(2, abs=1e-3)
    assert bound(tmp_path, {kind(memory=1_500): 9}, [node]) == pytest.approx(2.6667, abs=1e-3)
    assert bound(tmp_path, {kind(spec="T4"): 9}, [node]) == 0


def test_tasks_of_several_gpus_need_a_node_that_has_them(tmp_path: Path) -> None:
    """Four of two nodes with two each are none."""
    nodes: list[tuple[object, ...]] = [("n-0", 96_000, 9_000, 2, "G2"), ("n-1", 96_000, 9_000, 2, "G2")]

    assert bound(tmp_path, {kind(count=4): 1}, nodes) == 0
    assert bound(tmp_path, {kind(count=2): 1}, nodes) == pytest.approx(2, abs=1e-3)


def test_the_best_pattern_fills_a_gpu_by_worth() -> None:
    """Not by size: three of 330 are worth more here than one of 810."""
    assert best_pattern({330: 1.0, 810: 2.5, 470: -1.0}) == (3.0, {330: 3})
    assert best_pattern({330: 0.0}) == (0.0, {})


def test_machines_are_counted_by_kind(tmp_path: Path) -> None:
    """Those without GPUs do not matter."""
    write(tmp_path, nodes=[("a", 8, 8, 2, "T4"), ("b", 8, 8, 2, "T4"), ("c", 8, 8, 0, "")])

    (found,) = machine_kinds(read(tmp_path, "tiny").machines)

    assert (found.model, found.gpus, found.number) == ("T4", 2, 2)


def test_only_tasks_for_gpus_that_have_come_by_then_are_counted(tmp_path: Path) -> None:
    """Until as many are asked for as there are."""
    trace = tiny(tmp_path)
    come = asked(trace, 42)

    assert all(kind.count for kind in come)
    assert sum(kind.gpu * number for kind, number in come.items()) <= 1.005 * trace.capacity


@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_exceeds_it(tmp_path: Path, policy: str) -> None:
    """On a trace of 14 GPUs."""
    trace = tiny(tmp_path)

    assert run(trace, policy, 42).allocated <= lp_bound(trace, 42) + 0.5
