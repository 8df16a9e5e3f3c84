"""A trace becomes the traffic of its functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_autoscaler.simulator.traffic import traffic_files
from pilotlight_autoscaler.simulator.traffic.trace_files import TraceFault
from pilotlight_autoscaler.simulator.traffic.traffic_files import read_traffic


def written(folder: Path, text: str) -> Path:
    path = folder / "trace.csv"
    path.write_text(text)
    return path


def test_calls_and_counts_are_read(tmp_path: Path) -> None:
    """With classes; what is only counted lasts as long as is said of it."""
    calls = read_traffic(
        written(tmp_path, "function,at_s,duration_s,tenant,class\nf,61,2,a,batch\nf,1,3,a,batch\n"), lambda _: 9.0
    )
    assert (calls.minutes, calls.classes) == (2, {("a", "f"): "batch"})
    assert calls.by_function["a", "f"].calls(0) == [(1.0, 3.0)]

    counts = read_traffic(written(tmp_path, "function,minute,count\nf,4,2\nf,4,1\n"), lambda _: 9.0)
    assert (counts.minutes, counts.by_function["", "f"].count(4), counts.by_function["", "f"].mean_s(4)) == (5, 3, 9.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("function,at_s,duration_s\nf,1,1\nf,x,1\n", "line 3: at_s: expected a number"),
        ("function,at_s,duration_s,class\nf,1,1,batch\nf,2,1,standard\n", "line 3: class: f is of class 'batch'"),
        ("function,at_s,duration_s\nf,1,1\nf,2,1\nf,3,1\n", "line 4: more than 2 calls"),
        ("function,minute,count\nf,1,0\n", "there is no call in it"),
    ],
)
def test_a_bad_trace_is_refused_by_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    """And by what was expected."""
    monkeypatch.setattr(traffic_files, "MOST_CALLS", 2)
    with pytest.raises(TraceFault, match=said):
        read_traffic(written(tmp_path, text), lambda _: 1.0)
