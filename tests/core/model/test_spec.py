"""Specs, manifests and their bounds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import (
    SLO,
    Batching,
    FileEntry,
    FunctionSpec,
    Manifest,
    MethodSpec,
    Mode,
    check_spec,
)
from pilotlight_core.model.units import GpuAsk
from tests.builders.specs import function_spec, method


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cpu", 0.0), ("memory", 1), ("timeout", 0.0), ("timeout", 90_000.0), ("retries", 11), ("max_containers", 0),
        ("min_containers", -1), ("min_containers", 11), ("scaledown_window", -1.0), ("max_inputs", 0), ("methods", ()),
        ("env", {"X": "y" * 40_000}), ("vram", 0), ("gpu", (GpuAsk("H100", 0),)), ("gpu", (GpuAsk("H100", -2),)),
        ("gpu", (GpuAsk("H100", 100),)), ("gpu", (GpuAsk("T4"), GpuAsk("X\x1b[2J"))), ("gpu", (GpuAsk("H100:2"),)),
        ("gpu", (GpuAsk("X" * 64),)), ("gpu", (GpuAsk(""),)), ("slo", SLO(p95_ms=0.0)), ("slo", SLO(itl_ms=-1.0)),
        ("slo", SLO(itl_ms=5.0)),
        ("slo", SLO(ttft_ms=float("nan"))), ("slo", SLO(p95_ms=9.0, ttft_ms=50.0)), ("slo", SLO(p95_ms=float("inf"))),
    ],
)  # fmt: skip
def test_out_of_range_options_are_refused_by_name(field: str, value: Any) -> None:
    """The gateway never trusts the SDK's own check."""
    with pytest.raises(BadInput) as refused:
        check_spec(function_spec(**{field: value}))

    assert refused.value.more["field"] == field


def test_gpus_as_they_are_written_are_let_in() -> None:
    """And levels, where there are any."""
    check_spec(function_spec(gpu=(GpuAsk("A100-80GB", 8), GpuAsk("ANY"), GpuAsk("H100", 99)), slo=SLO(p95_ms=0.5)))


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


def test_a_spec_survives_the_wire() -> None:
    """JSON and msgpack both give it back whole."""
    full = function_spec(
        env={"A": "b"}, vram=2**30, methods=(MethodSpec(name="", attribute="f", batching=Batching(max_batch_size=8)),)
    )

    assert msgspec.json.decode(msgspec.json.encode(full), type=FunctionSpec) == full
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(full), type=FunctionSpec) == full
    check_spec(full)


def test_the_version_id_is_the_content() -> None:
    """The same manifest always has the same id; any change gives another."""
    files = (FileEntry("app.py", "00" * 32, 10),)
    one = Manifest(tenant="t", app="a", function="greet", spec=function_spec(), files=files)
    same = msgspec.json.decode(one.encode(), type=Manifest)
    other = msgspec.structs.replace(one, spec=function_spec(timeout=5.0))

    assert one.version_id == same.version_id
    assert one.version_id != other.version_id


def test_a_batcher_holds_one_batch_that_runs_and_one_that_forms() -> None:
    """Its slots are twice the batch size."""
    batching = (MethodSpec(name="", attribute="f", batching=Batching(max_batch_size=8)),)

    assert function_spec(methods=batching).slots == 16
    assert function_spec(max_inputs=3).slots == 3


def test_a_call_has_time_for_each_of_its_tries() -> None:
    """A start, and for each try the timeout and the longest pause before it."""
    assert function_spec(timeout=2.0, startup_timeout=3.0).longest_call_s == 5.0
    assert function_spec(timeout=2.0, startup_timeout=3.0, retries=2).longest_call_s == 3.0 + 3 * 2.0 + 2 * 10.0


def test_methods_are_found_by_name_and_the_only_one_without() -> None:
    """Several methods need a name, and the error lists them."""
    two = function_spec("k", method("a"), method("b", "b"), is_class=True)

    assert two.method("b").attribute == "b"
    assert function_spec().method(None).attribute == "greet"
    with pytest.raises(BadInput, match="name a method of it; its methods: a, b"):
        two.method(None)
