"""Device memory that a spec asks for."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.placing import Model, Placing
from pilotlight_core.model.spec import Batching, FunctionSpec, MethodSpec
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.asks.memory_need import plan_of
from tests.builders.specs import function_spec

LLAMA = Model(parameters=8e9, layers=32, kv_heads=8, head_size=128, hidden=4096, context_tokens=8192)


def spec(**options: Any) -> FunctionSpec:
    return function_spec("f", **{"gpu": (GpuAsk("H100"),)} | options)


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
