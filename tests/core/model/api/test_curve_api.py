"""Curves as records: merged, bounded, checked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.api.curve_api import (
    MAX_CURVES,
    MAX_POINTS,
    Curve,
    CurvePoint,
    CurveSource,
    CurvesRecord,
    check_points,
    check_slice,
)
from pilotlight_core.model.errors import BadInput


def point(batch: int = 1, **more: Any) -> CurvePoint:
    fields: dict[str, Any] = {"throughput": 10.0, "p50_ms": 5.0, "p95_ms": 9.0, "samples": 20} | more
    return CurvePoint(batch=batch, **fields)


def curve(
    *points: CurvePoint, gpu: str = "T4", source: CurveSource = CurveSource.MEASURED, software: bool = False
) -> Curve:
    return Curve(gpu=gpu, slice="whole", source=source, points=points, software=software)


def test_what_is_found_out_anew_replaces_its_batch_size_only() -> None:
    """Other sizes, slices and sources stay."""
    before = CurvesRecord(version="v").with_curves(
        (curve(point(1), point(8)), curve(point(1), source=CurveSource.LEARNT))
    )

    after = before.with_curves((curve(point(8, throughput=99.0, at=5.0)),))

    learnt, measured = sorted(after.curves, key=lambda each: each.source)
    assert [(p.batch, p.throughput) for p in measured.points] == [(1, 10.0), (8, 99.0)]
    assert [p.batch for p in learnt.points] == [1]


def test_figures_of_a_gpu_in_software_and_of_a_real_one_are_not_mixed() -> None:
    """Whichever was measured last stands alone."""
    record = CurvesRecord(version="v").with_curves((curve(point(1), software=True),))

    record = record.with_curves((curve(point(8)),))

    assert [(c.software, [p.batch for p in c.points]) for c in record.curves] == [(False, [8])]


BATCHES = st.lists(st.integers(1, 200), min_size=1, max_size=60, unique=True)


@given(st.lists(st.tuples(st.integers(0, 120), BATCHES, st.floats(0, 1e6)), max_size=20))
def test_a_record_is_bounded_whatever_is_kept(given_: list[tuple[int, list[int], float]]) -> None:
    """And the latest is never what goes."""
    record = CurvesRecord(version="v")
    for number, batches, at in sorted(given_, key=lambda each: each[2]):
        points = tuple(point(batch, at=at) for batch in batches[:MAX_POINTS])
        record = record.with_curves((curve(*points, gpu=f"G{number}"),))

    assert len(record.curves) <= MAX_CURVES
    assert all(0 < len(c.points) <= MAX_POINTS for c in record.curves)
    assert len({c.key for c in record.curves}) == len(record.curves)
    if given_:
        newest = max(at for _, _, at in given_)
        assert max(p.at for c in record.curves for p in c.points) == newest
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(record), type=CurvesRecord) == record


@pytest.mark.parametrize(
    "points",
    [
        (),
        (point(1), point(1)),
        (point(0),),
        (point(1, throughput=float("nan")),),
        (point(1, throughput=1e-320),),
        (point(1, p95_ms=0.0),),
        (point(1, p50_ms=10.0),),
        (point(1, samples=-1),),
        tuple(point(batch + 1) for batch in range(MAX_POINTS + 1)),
    ],
)
def test_points_that_no_measurement_gives_are_refused(points: tuple[CurvePoint, ...]) -> None:
    """By name."""
    with pytest.raises(BadInput, match="points"):
        check_points(points)


@pytest.mark.parametrize(
    ("gpu", "cut"), [("", "whole"), ("H 100", "whole"), ("T4", ""), ("T4", "x\n"), ("T4", "é"), ("T4", "x" * 64)]
)
def test_a_slice_that_is_none_is_refused(gpu: str, cut: str) -> None:
    """Before it becomes part of anything."""
    with pytest.raises(BadInput):
        check_slice(gpu, cut)
