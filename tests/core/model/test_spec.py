"""Specs, and what is written of them."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.engines.engine_spec import EngineKind, EngineSpec
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import (
    Batching,
    FunctionSpec,
    MethodSpec,
)
from pilotlight_core.model.versions.manifest_codec import FIELDS_OF_0_1
from tests.builders.specs import function_spec, method


def test_what_says_nothing_new_is_written_as_release_0_1_reads_it() -> None:
    """Older gateways and clients, which refuse unknown fields, read records and answers with it meanwhile."""
    known = [field.name for field in msgspec.structs.fields(FunctionSpec)][: FIELDS_OF_0_1[FunctionSpec]]

    assert list(msgspec.msgpack.decode(msgspec.msgpack.encode(function_spec()))) == known
    assert list(msgspec.json.decode(msgspec.json.encode(function_spec(pids=64)))) == [*known, "pids"]


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


def test_of_an_engines_slots_some_are_not_for_all() -> None:
    """It takes more calls than it runs, for callers who have few."""
    engine = EngineSpec(kind=EngineKind.SIM, max_sequences=8)
    spec = function_spec(max_inputs=9, engine=engine)

    assert (spec.slots, spec.slots_of_all) == (9, 8)
    assert function_spec(max_inputs=9).slots_of_all == 9
