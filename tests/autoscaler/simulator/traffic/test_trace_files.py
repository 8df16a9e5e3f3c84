"""Recorded calls are read, or refused with the line and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_autoscaler.simulator.minutes.minute_model import MinuteSeries
from pilotlight_autoscaler.simulator.traffic.trace_files import TraceFault, most_at_once, read_trace


def written(folder: Path, text: str) -> Path:
    path = folder / "trace.csv"
    path.write_text(text)
    return path


def test_counts_by_minute(tmp_path: Path) -> None:
    """In any order; counts of one minute add up; a function of a tenant is not that of another."""
    trace = read_trace(
        written(tmp_path, "tenant,function,minute,count\na,f,4,1\na,f,1,2\na,f,1,1\nb,f,0,1\n\nb,f,5,0\n")
    )
    assert trace.series() == [MinuteSeries((3,), 1, 4), MinuteSeries((), 5, 1)]
    assert trace.needed() == [[0, 1, 0, 0, 1, 0], [1, 0, 0, 0, 0, 0]]
    assert (trace.calls, trace.minutes) == (5, 6)


def test_calls_one_by_one(tmp_path: Path) -> None:
    """As many containers are needed as calls run at once; a long call needs one in every minute."""
    rows = "f,10,5\nf,12,1\nf,70,150\ng,0,0\n"
    trace = read_trace(written(tmp_path, f"function,at_s,duration_s\n{rows}"))
    assert trace.needed() == [[2, 1, 1, 1], [1, 0, 0, 0]]
    assert trace.series() == [MinuteSeries((1, 1, 1), 0, 4), MinuteSeries((), 3, 1), MinuteSeries((), 3, 1)]


def test_calls_at_once_end_when_they_end() -> None:
    """One that begins when another ends needs no second container; none is needed while nothing runs."""
    assert most_at_once([(0.0, 30.0), (30.0, 59.0)]) == {0: 1.0}
    assert most_at_once([(200 * 86_400.0, 200 * 86_400.0)]) == {288_000: 1.0}
    assert most_at_once([(50.0, 130.0), (100.0, 110.0), (400.0, 401.0)]) == {0: 1.0, 1: 2.0, 2: 1.0, 6: 1.0}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no column function"),
        ("function,minute\nf,1\n", "no column count: expected function,minute,count or"),
        ("function,minute,count,colour\n", "'colour' is no column"),
        ("function,minute,count\nf,1\n", "line 2: 2 cells: expected 3"),
        ("function,minute,count\nf,x,1\n", "line 2: minute: expected a number"),
        ("function,minute,count\nf,1.5,1\n", "line 2: minute and count: expected whole"),
        ("function,minute,count\nf,nan,1\n", "line 2: minute: expected a number"),
        ("function,minute,count\nf,99999999,1\n", "line 2: minute: expected a number from 0 to"),
        ("function,minute,count\n,1,1\n", "line 2: function: expected a name"),
        ("function,at_s,duration_s\nf,1,-1\n", "line 2: duration_s: expected a number"),
        ("function,minute,count\nf,1,0\n", "no call"),
    ],
)
def test_what_is_no_trace_is_refused(text: str, said: str, tmp_path: Path) -> None:
    """With its line."""
    with pytest.raises(TraceFault, match=said):
        read_trace(written(tmp_path, text))


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    """Is refused alike."""
    with pytest.raises(TraceFault, match="No such file"):
        read_trace(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TraceFault):
        read_trace(tmp_path / "binary.csv")
