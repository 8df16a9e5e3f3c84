"""From a function's spec to what one container asks for."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.placing import Measured, Model, Over, Placing, Purchase, Spread
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.resident_ask import ResidentAsk
from tests.builders.specs import function_spec

LLAMA = Model(parameters=8e9, layers=32, kv_heads=8, head_size=128, hidden=4096, context_tokens=8192)


def spec(**options: Any) -> FunctionSpec:
    return function_spec("f", **{"gpu": (GpuAsk("H100"),)} | options)


def test_all_of_placing_reaches_the_ask() -> None:
    """With names of functions and weights as the tenant's own."""
    placing = Placing(
        by_cost=True, spread=Spread(over=Over.ZONE, most=2), avoid=("jobs.train",), weights="llama",
        purchase=Purchase.SPOT, regions=("eu",), zones=("a",), neighbours=True, media=True,
    )  # fmt: skip

    made = Ask.of(spec(placing=placing), function="acme:app.f", tenant="acme")

    assert (made.by_cost, made.spread, made.purchase) == (True, Spread(over=Over.ZONE, most=2), Purchase.SPOT)
    assert (made.avoid, made.resident) == (("acme:jobs.train",), (ResidentAsk("acme:llama"),))
    assert (made.regions, made.zones, made.neighbours, made.media) == (("eu",), ("a",), True, True)


def test_measured_points_are_curves_by_the_catalogues_names() -> None:
    """ "H100" is each device of that name, and the driver's profile name is the profile."""
    points = (
        Measured(gpu="H100", slice="3g.40gb", batch=8, throughput=100.0, p95_ms=20.0),
        Measured(gpu="H100", slice="3g.40gb", batch=32, throughput=300.0, p95_ms=90.0),
        Measured(gpu="NPU9", batch=1, throughput=5.0, p95_ms=9.0),
    )
    asked = Ask.of(spec(placing=Placing(measured=points)))

    assert asked.curves is not None
    best = asked.curves.best("H100-80GB", "3g", 50.0)
    assert best is not None
    assert best.batch == 8
    assert asked.curves.knows("NPU9", "whole")
    assert asked == Ask.of(spec(placing=Placing(measured=points)))
