"""From tallies to the facts of a window."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.messages.node_messages import SliceKind, SliceReport
from pilotlight_core.model.messages.seeing.tallies import (
    BatchTally,
    FunctionTally,
    GatewayTally,
    HomeTally,
    SampledCall,
)
from pilotlight_core.model.scaling.scale_bounds import bounds_of
from pilotlight_core.model.spec import SLO, Batching, FunctionSpec, MethodSpec
from pilotlight_core.model.units import GpuAsk
from pilotlight_gateway.diagnosis.diagnosis_window import DiagnosisWindow
from pilotlight_gateway.diagnosis.operational_laws import broken_laws
from pilotlight_gateway.diagnosis.window_facts import CountedWindow, ObservedFunction, bearable_ms, diagnosis_window
from pilotlight_gateway.fleet.container_history import ContainerMinute
from pilotlight_gateway.tally.sketch import Sketch
from tests.builders.nodes import container

RUN_US = 40_000


def sketch(*ms: float) -> Any:
    found = Sketch()
    for each in ms:
        found.add(each)
    return found.value()


def sampled(number: int, size: int = 1) -> SampledCall:
    stages = (200, 0, 0, 0, 300, 0, RUN_US, 0, 100)
    return SampledCall(f"call_{number}", 1, sum(stages), stages, batch_size=size)


def tally(**more: Any) -> FunctionTally:
    fields: dict[str, Any] = {
        "arrivals": 100, "ended": 100, "durations": sketch(*[40.6] * 100), "stages": {"execute": sketch(*[40.0] * 100)},
        "batches": {1: BatchTally(100, 100 * 40.0 / 10)}, "inside_ms": 100 * 40.6,
        "samples": tuple(sampled(n) for n in range(16)),
    }  # fmt: skip
    return FunctionTally(**fields | more)


def spec(**more: Any) -> FunctionSpec:
    batching = more.pop("batching", None)
    fields: dict[str, Any] = {
        "name": "f", "module": "m", "qualname": "f",
        "methods": (MethodSpec(name="", attribute="f", batching=batching),),
        "gpu": (GpuAsk(type="H100"),), "slo": SLO(p95_ms=250.0),
    }  # fmt: skip
    return FunctionSpec(**fields | more)


def facts(counted: FunctionTally, asked: FunctionSpec | None = None, **more: Any) -> DiagnosisWindow:
    """Of ten seconds, on a tenth of a GPU."""
    wanted = asked or spec()
    cut = SliceReport(id="GPU-1:1g", kind=SliceKind.MIG, device="GPU-1", ppm=100_000, price="h100", gpu_type="H100")
    home = HomeTally(seen_s=10.0, ready_s=20.0, queued_s=5.0, running_s=4.0, slots_s=20.0, most_ready=2)
    observed = ObservedFunction(
        ref="shop.f@v1", spec=wanted, bounds=bounds_of(wanted, None, 0.0), containers=((container(), cut),), **more
    )
    gateways = (GatewayTally(gateway="a", loop_share=0.2), GatewayTally(gateway="b", loop_share=0.7))
    return diagnosis_window(CountedWindow(seconds=10.0, tally=counted, home=home, gateways=gateways), observed)


def test_what_was_counted_adds_up() -> None:
    window = facts(tally())

    assert broken_laws(window) == ()
    assert (window.arrivals, window.completed, window.level_ms) == (100, 100, 250.0)
    assert (window.containers, window.queued, window.held_part) == (2.0, 0.5, 0.2)


def test_the_time_of_a_slice_is_what_calls_were_billed_of_its_part_of_a_device() -> None:
    window = facts(tally())

    assert round(window.busy_s or 0, 3) == 4.0  # of 0.4 s of a whole GPU
    assert window.slice == "10% of H100"


def test_the_busiest_gateway_counts() -> None:
    assert (facts(tally()).loop_part, facts(tally()).gateways) == (0.7, 2)


def test_examples_stand_for_all_calls() -> None:
    window = facts(tally())

    assert round(sum(each.weight for each in window.samples)) == 100
    assert {len(each.stages) for each in window.samples} == {9}


def test_large_batches_have_their_sizes_from_the_examples() -> None:
    """Above 16 they are counted together up to their double."""
    counted = tally(batches={16: BatchTally(96, 96.0)}, samples=tuple(sampled(n, size=24) for n in range(16)))
    (batch,) = facts(counted, spec(batching=Batching(max_batch_size=32))).batches

    assert (batch.size, batch.count, batch.ms) == (24, 4.0, 40.0)


def test_a_function_without_a_level_may_take_twice_as_long_as_it_runs() -> None:
    assert bearable_ms(FunctionTally()) == 300.0
    assert round(bearable_ms(FunctionTally(stages={"execute": sketch(*[5_000.0] * 9)})), -2) == 10_000.0
    assert not facts(tally(), spec(slo=SLO())).level_named


def test_containers_die_only_where_calls_were_lost_with_them() -> None:
    """One that ends for want of work may be gone before its node says that it drains."""
    gone = ContainerMinute(0, died=3, ended=1)

    assert (facts(tally(), history=gone).died, facts(tally(), history=gone).idle_ends) == (0, 4)
    assert facts(tally(failures={"container_died": 2}), history=gone).died == 3


def test_a_function_on_cpu_slots_has_no_device() -> None:
    assert not facts(tally(), spec(gpu=())).on_gpu
