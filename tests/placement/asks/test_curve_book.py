"""Which curves count for a version."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.api.curve_api import Curve, CurvePoint, CurveSource, CurvesRecord
from pilotlight_core.model.placing import Measured, Placing
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.curve_book import CurveBook, points_of
from pilotlight_placement.asks.curves import Curves
from pilotlight_placement.asks.options import UNMEASURED, options
from pilotlight_placement.explain.speeds import explain_containers
from pilotlight_placement.hardware.catalogue import standard
from tests.builders.specs import function_spec, version_record

CREATED = 1_000.0


def version(number: int = 2, **placing: Any) -> VersionRecord:
    spec = function_spec("f", placing=Placing(**placing))
    return version_record(spec, id=f"ver_{number}", tenant="zoo", app="app", number=number, created_at=CREATED)


def curve(source: CurveSource, throughput: float, *, at: float = CREATED + 1, batch: int = 1, gpu: str = "T4") -> Curve:
    point = CurvePoint(batch=batch, throughput=throughput, p50_ms=9.0, p95_ms=10.0, samples=50, at=at)
    return Curve(gpu=gpu, slice="whole", source=source, points=(point,))


def record(number: int, *curves: Curve) -> CurvesRecord:
    return CurvesRecord(version=f"ver_{number}", curves=curves)


@pytest.mark.parametrize(
    ("own", "earlier", "throughput", "hard"),
    [
        ((curve(CurveSource.MEASURED, 1.0), curve(CurveSource.LEARNT, 2.0)), (), 1.0, True),
        ((curve(CurveSource.MEASURED, 1.0, at=CREATED - 1), curve(CurveSource.LEARNT, 2.0)), (), 2.0, False),
        ((curve(CurveSource.LEARNT, 2.0),), (curve(CurveSource.MEASURED, 4.0),), 2.0, False),
        ((), (curve(CurveSource.MEASURED, 4.0), curve(CurveSource.LEARNT, 5.0)), 3.0, True),
        ((curve(CurveSource.MEASURED, 1.0, at=CREATED - 1),), (), 3.0, True),
    ],
)
def test_the_most_trustworthy_source_counts(
    own: tuple[Curve, ...], earlier: tuple[Curve, ...], throughput: float, *, hard: bool
) -> None:
    """Measured, learnt, declared; then what is older than the version. Only fresh measurements rule anything out."""
    declared = version(measured=(Measured(gpu="T4", batch=1, throughput=3.0, p95_ms=10.0),))

    point = points_of(declared, record(2, *own), record(1, *earlier))["T4", "whole"][0]

    assert (point.throughput, point.hard) == (throughput, hard)


def test_hardly_any_throughput_is_a_number_still() -> None:
    """Such a curve orders places or is ignored; no division by it fails."""
    tiny = 1e-320
    declared = version(measured=(Measured(gpu="T4", batch=1, throughput=tiny, p95_ms=10.0),))
    for points in (
        points_of(declared, None, None),
        points_of(version(), record(2, curve(CurveSource.MEASURED, tiny)), None),
    ):
        known = Curves(points)

        found = options(Ask(gpu=(GpuAsk("T4"),), curves=known), standard()["T4"], mig=False, shareable=False)
        assert isinstance(found, list)
        assert 0 < found[0].level(2.0) < UNMEASURED
        best = known.best("T4", "whole")
        assert best is not None
        assert "containers" in explain_containers(best, 1e9)


def test_each_batch_size_has_its_own_best_source() -> None:
    """What was learnt of small batches does not hide what was measured of large ones."""
    own = record(2, curve(CurveSource.LEARNT, 5.0, batch=1), curve(CurveSource.MEASURED, 80.0, batch=16))

    points = points_of(version(), own, None)["T4", "whole"]

    assert [(p.batch, p.source) for p in points] == [(1, CurveSource.LEARNT), (16, CurveSource.MEASURED)]


def test_what_is_only_learnt_rules_nothing_out() -> None:
    """A bad minute must not leave a function without any place."""
    learnt = Curves(points_of(version(), record(2, curve(CurveSource.LEARNT, 5.0)), None))
    measured = Curves(points_of(version(), record(2, curve(CurveSource.MEASURED, 5.0)), None))

    assert learnt.is_slow("T4", "whole", 5.0)
    assert not learnt.rules_out("T4", "whole", 5.0)
    assert measured.rules_out("T4", "whole", 5.0)


class Shelf:
    def __init__(self, *records: CurvesRecord) -> None:
        self.records = {each.version: each for each in records}

    def curves(self, version_id: str) -> CurvesRecord | None:
        return self.records.get(version_id)

    def app_nowait(self, tenant: str, app: str) -> AppRecord | None:
        return AppRecord(tenant=tenant, app=app, revision=1, functions={}, versions={"f": ("ver_1", "ver_2")})


def test_a_book_gives_the_same_object_until_something_is_found_out() -> None:
    """Asks are compared by it: a new object per pass would recompute all tables."""
    shelf = Shelf(record(1, curve(CurveSource.MEASURED, 4.0)))
    book = CurveBook(shelf)
    first = book.of(version())
    again = book.of(version())
    shelf.records["ver_1"] = record(1, curve(CurveSource.MEASURED, 4.0))
    equal = book.of(version())
    shelf.records["ver_2"] = record(2, curve(CurveSource.MEASURED, 6.0))
    fresh = book.of(version())

    assert first is again is equal
    assert first is not None
    assert fresh is not None
    assert fresh is not first
    assert fresh.points["T4", "whole"][0].throughput == 6.0
    assert book.of(version(number=1)) is not None
    assert CurveBook(Shelf()).of(version()) is None
