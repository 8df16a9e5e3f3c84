"""From a function's spec to what one container asks for."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.placing import Measured, Model, Over, Placing, Purchase, Spread
from pilotlight_core.model.spec import Batching, FunctionSpec, MethodSpec
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.asks.memory_need import plan_of
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
    assert (made.avoid, made.weights) == (("acme:jobs.train",), "acme:llama")
    assert (made.regions, made.zones, made.neighbours, made.media) == (("eu",), ("a",), True, True)


def test_memory_is_computed_at_the_concurrency() -> None:
    """Eight calls at once keep eight contexts; a batch counts as its calls."""
    one = Ask.of(spec(placing=Placing(model=LLAMA)))
    eight = Ask.of(spec(placing=Placing(model=LLAMA), max_inputs=8))
    batch = MethodSpec(name="", attribute="f", batching=Batching(max_batch_size=8))
    batched = Ask.of(spec(placing=Placing(model=LLAMA), methods=(batch,)))

    assert eight.vram - one.vram == 7 * (GIB + 4096 * 8 * 2)  # 128 KiB of cache a token, and what a token activates
    assert batched.vram == eight.vram


def test_of_several_choices_the_one_with_most_devices_decides() -> None:
    """Each device has a context of its own, so two need a little more in all."""
    both = Ask.of(spec(gpu=(GpuAsk("H100"), GpuAsk("T4", 2)), placing=Placing(model=LLAMA)))
    two = plan_of(spec(placing=Placing(model=LLAMA)), 2)

    assert two is not None
    assert both.vram == two.total
    assert both.mib(2) * 2**20 >= two.per_device


def test_declared_memory_stands_as_it_is() -> None:
    """And none declared is none known."""
    assert Ask.of(spec(vram=10 * GIB)).vram == 10 * GIB
    assert Ask.of(spec()).vram == 0
    assert plan_of(spec()) is None


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
