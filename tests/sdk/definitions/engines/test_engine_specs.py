"""The specification of an engine function."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from pilotlight import Example, OptionError, Sim, Torch
from pilotlight.definitions.engines.engine_specs import ENGINE_CALLEES, ENGINE_METHODS, build_engine_spec, check_stub
from pilotlight_core.model.engines.engine_spec import ENGINE_CLASS, ENGINE_MODULE
from pilotlight_core.model.spec import Mode
from pilotlight_core.model.versions.manifest_codec import ENGINE, needs_of
from pilotlight_engine.serving.engine_function import EngineFunction


def test_it_runs_the_platforms_code() -> None:
    spec = build_engine_spec({"engine": Torch("tiny", max_sequences=8)}, "chat")

    assert (spec.module, spec.qualname) == (ENGINE_MODULE, ENGINE_CLASS)
    assert (EngineFunction.__module__, EngineFunction.__qualname__) == (ENGINE_MODULE, ENGINE_CLASS)
    assert [(method.name, method.mode) for method in spec.methods] == [
        ("generate", Mode.GENERATOR), ("embed", Mode.UNARY),
    ]  # fmt: skip
    assert spec.max_inputs == 8 + 2  # two for callers who have few there
    assert spec.resumable
    assert spec.idempotent
    assert ENGINE in needs_of(spec)
    assert not spec.park
    assert build_engine_spec({"engine": Torch("tiny"), "gpu": "any"}, "chat").park == ("park",)


def test_its_schemas_are_those_of_what_runs() -> None:
    """And of what its callers see."""
    for method, callee in zip(ENGINE_METHODS, ENGINE_CALLEES, strict=True):
        named = list(method.input_schema["properties"])
        for function in (callee.function, getattr(EngineFunction, method.attribute)):
            assert list(inspect.signature(function).parameters)[1:] == named
        assert method.input_schema["x-pilotlight-order"] == named


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"weights": ["tiny"]}, "chat: weights= is not for a function with engine="),
        ({"schedule": object()}, "schedule= is not for"),
        ({"gpu": "H100:2"}, "one device"),
        ({"warmup": [Example({"promt": "a"}, method="generate")]}, "promt"),
        ({"batchs": 3}, "batchs= is not an option"),
    ],
)
def test_options_that_are_for_code_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        build_engine_spec({"engine": Torch("tiny"), **options}, "chat")


def test_a_stub_is_empty() -> None:
    class Chat:
        def say(self) -> None: ...

    def chat(prompt: str) -> None: ...

    def empty() -> None: ...

    check_stub(empty)
    check_stub(type("Empty", (), {}))
    with pytest.raises(OptionError, match="has the method say, and engine="):
        check_stub(Chat)
    with pytest.raises(OptionError, match="has parameters, and engine="):
        check_stub(chat)
    with pytest.raises(OptionError, match="stands above an empty function"):
        check_stub(3)


def test_what_a_caller_sees_runs_nowhere_else() -> None:
    with pytest.raises(OptionError, match="engine= is missing"):
        build_engine_spec({}, "chat")
    assert build_engine_spec({"engine": Sim(), "resumable": False}, "chat").name == "chat"
