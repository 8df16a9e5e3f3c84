"""`pilotlight stats` says in words and numbers what calls were."""

from __future__ import annotations

import msgspec

from pilotlight.cli.commands.seeing.stats import lines_of
from pilotlight_core.model.api.seeing.tally_api import FunctionStats, JobRunStats, Quantiles
from tests.sdk.cli.seeing_answers import STATS


def test_a_function_is_told_line_by_line() -> None:
    """What there was nothing of is left out."""
    told = "\n".join(lines_of(msgspec.convert(STATS, FunctionStats)))
    assert told.startswith("hello.greet: 1200 calls in 10.2 min, 1.96/s")
    assert "10 no_capacity" in told
    assert "99.17 %" in told
    assert "p50 21 ms, p95 80.5 ms, p99 1.2 s" in told
    assert "2 calls waited for a start: load 900 ms" in told
    assert "first chunk" not in told


def test_runs_of_jobs_have_lines_of_their_own() -> None:
    jobs = JobRunStats(runs=40, per_s=0.4, failed={"oom": 10}, durations=Quantiles(count=30, p50=90_000.0))
    told = list(lines_of(FunctionStats(function="a.b", since="", until="", window_s=600.0, jobs=jobs)))
    assert told[1] == "  jobs        40 runs beside these calls, 0.4/s, 10 oom"
    assert "p50 90 s" in told[2]


def test_a_function_without_calls_is_one_line() -> None:
    nothing = FunctionStats(function="a.b", since="", until="", window_s=600.0)
    assert list(lines_of(nothing)) == ["a.b: 0 calls in 10 min, 0/s"]
