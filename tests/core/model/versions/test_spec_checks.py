"""Specs that contradict themselves or exceed bounds are refused by name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.engines.engine_spec import ENGINE_CLASS, ENGINE_MODULE, EngineKind, EngineSpec
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import (
    SLO,
    Batching,
    FunctionSpec,
    MethodSpec,
    Mode,
)
from pilotlight_core.model.units import GpuAsk
from pilotlight_core.model.versions.spec_checks import check_spec
from tests.builders.specs import function_spec, method


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cpu", 0.0), ("memory", 1), ("timeout", 0.0), ("timeout", 90_000.0), ("retries", 11), ("max_containers", 0),
        ("min_containers", -1), ("min_containers", 11), ("scaledown_window", -1.0), ("zero_window", 30.0),
        ("max_inputs", 0), ("methods", ()),
        ("env", {"X": "y" * 40_000}), ("vram", 0), ("gpu", (GpuAsk("H100", 0),)), ("gpu", (GpuAsk("H100", -2),)),
        ("gpu", (GpuAsk("H100", 100),)), ("gpu", (GpuAsk("T4"), GpuAsk("X\x1b[2J"))), ("gpu", (GpuAsk("H100:2"),)),
        ("gpu", (GpuAsk("X" * 64),)), ("gpu", (GpuAsk(""),)), ("slo", SLO(p95_ms=0.0)), ("slo", SLO(itl_ms=-1.0)),
        ("slo", SLO(itl_ms=5.0)), ("shm", 2**20 - 1), ("shm", 3 * 2**30), ("scratch", 0), ("scratch", 2**50),
        ("pids", 15), ("pids", 70_000), ("tags", {"team": "a b"}),
        ("max_units", {"tokens": 1}), ("max_units", {"images": 0}), ("network", ("10.0.0.1:443",)),
        ("tags", {f"t{n}": "x" for n in range(11)}),
        ("slo", SLO(ttft_ms=float("nan"))), ("slo", SLO(p95_ms=9.0, ttft_ms=50.0)), ("slo", SLO(p95_ms=float("inf"))),
    ],
)  # fmt: skip
def test_out_of_range_options_are_refused_by_name(field: str, value: Any) -> None:
    """The gateway never trusts the SDK's own check."""
    with pytest.raises(BadInput) as refused:
        check_spec(function_spec(**{field: value}))

    assert refused.value.more["field"] == field


def test_file_systems_in_memory_are_part_of_the_memory() -> None:
    """Each fits, and both together must; what the platform gives where nothing is named is nobody's mistake."""
    check_spec(function_spec(memory=2**30, shm=2**29, scratch=2**29))
    check_spec(function_spec(memory=64 * 2**20))
    with pytest.raises(BadInput, match=r"are together 1073741825 B, more than memory=1 GiB: ") as refused:
        check_spec(function_spec(memory=2**30, shm=2**29, scratch=2**29 + 1))

    assert refused.value.more["field"] == "memory"
    with pytest.raises(BadInput, match=r"shm=64 GiB is out of range: expected 1 MiB to memory= \(1 GiB\)\."):
        check_spec(function_spec(memory=2**30, shm=2**36))


def test_gpus_as_they_are_written_are_let_in() -> None:
    """And levels, where there are any."""
    check_spec(function_spec(gpu=(GpuAsk("A100-80GB", 8), GpuAsk("ANY"), GpuAsk("H100", 99)), slo=SLO(p95_ms=0.5)))


def test_levels_of_tokens_are_for_engines_alone() -> None:
    """No other function has tokens that the platform sees."""
    engine = function_spec(
        module=ENGINE_MODULE, qualname=ENGINE_CLASS, methods=(method("generate"),),
        engine=EngineSpec(kind=EngineKind.SIM), slo=SLO(ttft_ms=500.0, itl_ms=50.0),
    )  # fmt: skip
    check_spec(engine)
    with pytest.raises(BadInput, match=r"SLO\(itl_ms=\) is of an engine's tokens, and this function is none"):
        check_spec(function_spec(slo=SLO(itl_ms=50.0)))
    with pytest.raises(BadInput, match=r"slo="):
        check_spec(msgspec.structs.replace(engine, slo=SLO(ttft_ms=0.0)))


@pytest.mark.parametrize(
    ("method", "field"),
    [
        (MethodSpec(name="", attribute="f", batching=Batching(max_batch_size=0)), "max_batch_size"),
        (MethodSpec(name="", attribute="f", batching=Batching(max_batch_size=4, wait_ms=-1)), "wait_ms"),
        (MethodSpec(name="", attribute="f", mode=Mode.GENERATOR, batching=Batching(max_batch_size=4)), "batched"),
        (MethodSpec(name="", attribute="f", input_schema={"x": "y" * 70_000}), "input_schema"),
        (MethodSpec(name="a.b", attribute="f"), "method"),
    ],
)
def test_contradictory_methods_are_refused(method: MethodSpec, field: str) -> None:
    """Batching, schemas and names have their own rules."""
    with pytest.raises(BadInput) as refused:
        check_spec(function_spec(methods=(method,)))

    assert refused.value.more["field"] == field


def test_the_schemas_of_all_methods_have_a_bound_together() -> None:
    """Each of them may be as large as any, but not all."""
    large = [MethodSpec(name=f"m{n}", attribute=f"m{n}", input_schema={"x": "y" * 65_000}) for n in range(5)]

    check_spec(function_spec(is_class=True, methods=tuple(large[:4])))
    with pytest.raises(BadInput, match="together larger than 256 KiB") as refused:
        check_spec(function_spec(is_class=True, methods=tuple(large)))
    assert refused.value.more["field"] == "methods"


def test_a_spec_survives_the_wire() -> None:
    """JSON and msgpack both give it back whole."""
    full = function_spec(
        env={"A": "b"}, vram=2**30, methods=(MethodSpec(name="", attribute="f", batching=Batching(max_batch_size=8)),)
    )

    assert msgspec.json.decode(msgspec.json.encode(full), type=FunctionSpec) == full
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(full), type=FunctionSpec) == full
    check_spec(full)
