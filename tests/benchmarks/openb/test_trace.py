"""Reading openb files: what they hold, and what is wrong with them, by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.openb.trace import BadTrace, Kind, altered, names, read, typical
from tests.benchmarks.openb.makers import PODS, kind, tiny, write


def test_a_trace_holds_its_tasks_by_name(tmp_path: Path) -> None:
    """Kinds, order, capacity, and the least CPU for a task that asks for none."""
    trace = tiny(tmp_path)
    assert trace.capacity == 14_000
    assert len(trace.pods) == len(PODS)
    assert trace.kinds[trace.pods[0]] == Kind(cpu=4_000, memory=8_000, milli=470, count=1, spec="")
    assert {kind.cpu for kind in trace.kinds if not kind.count} == {100, 12_000}


def test_names_have_the_default_first(tmp_path: Path) -> None:
    """All traces of a folder, "default" before the others."""
    for name in ("cpu050", "default", "a"):
        write(tmp_path, name)
    assert names(tmp_path) == ["default", "a", "cpu050"]


def test_a_changed_file_under_a_published_name_is_told(tmp_path: Path) -> None:
    """What we know by its digest is held to it; other traces are not."""
    write(tmp_path, "default")
    assert altered(tmp_path, "default") == ["openb_node_list_gpu_node", "openb_pod_list_default"]
    write(tmp_path, "mine")
    assert altered(tmp_path, "mine") == ["openb_node_list_gpu_node"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("p,1,1,two,1000,", "not a task"),
        ("p,1,1,2,500,", "neither whole GPUs nor a share"),
        ("p,1,1,9,1000,", "neither whole GPUs nor a share"),
        ("p,1,1,1,0,", "neither whole GPUs nor a share"),
        ("p,-1,1,1,1000,", "neither whole GPUs nor a share"),
        ("p,1,1,0,0,", "no task for a GPU"),
    ],
)
def test_what_is_no_task_is_refused(tmp_path: Path, line: str, reason: str) -> None:
    """The file, the line and the reason are named."""
    write(tmp_path)
    pods = tmp_path / "openb_pod_list_tiny.csv"
    pods.write_text(pods.read_text().splitlines()[0] + "\n" + line + "\n")
    with pytest.raises(BadTrace, match=reason):
        read(tmp_path, "tiny")


def test_a_file_of_another_kind_is_refused_in_words(tmp_path: Path) -> None:
    """No names, no text."""
    write(tmp_path)
    pods = tmp_path / "openb_pod_list_tiny.csv"
    pods.write_text("cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n1,1,1,1000,\n")
    with pytest.raises(BadTrace, match="line 2: not a task: there is no column 'name'"):
        read(tmp_path, "tiny")
    pods.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadTrace, match="is no table"):
        read(tmp_path, "tiny")


def test_marks_of_other_editors_are_read_over(tmp_path: Path) -> None:
    """A byte order mark, other line ends, empty lines."""
    before = tiny(tmp_path)
    pods = tmp_path / "openb_pod_list_tiny.csv"
    pods.write_bytes(b"\xef\xbb\xbf" + pods.read_bytes().replace(b"\n", b"\r\n") + b"\r\n\r\n")

    assert read(tmp_path, "tiny") == before


def test_what_is_no_node_is_refused(tmp_path: Path) -> None:
    """A node with more than eight GPUs, a fleet without any, and a missing file."""
    write(tmp_path, nodes=[("n", 1, 1, 9, "G2")])
    with pytest.raises(BadTrace, match="line 2"):
        read(tmp_path, "tiny")
    write(tmp_path, nodes=[("n", 1, 1, 0, "")])
    with pytest.raises(BadTrace, match="no GPU"):
        read(tmp_path, "tiny")
    write(tmp_path)
    with pytest.raises(BadTrace, match="cannot be read"):
        read(tmp_path, "absent")


def test_typical_tasks_stand_for_95_of_100() -> None:
    """The most frequent asks, their parts summing to 1; memory makes no difference; the rare ones are cut off."""
    pods = [kind(memory=1)] * 60 + [kind(memory=2)] * 30 + [kind(cpu=5)] * 6 + [kind(cpu=7)] * 4
    found = typical(pods)
    assert [task.cpu for task in found] == [1000, 5]
    assert [task.weight for task in found] == pytest.approx([90 / 96, 6 / 96])
