"""Which pipelines a class may have, and what its companions are called."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.engines.engine_spec import EngineKind, EngineSpec
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.pipelines.pipeline import (
    CallHook,
    HookKind,
    Pipeline,
    companion_name,
    hook_place,
    is_companion,
    pipeline_fault,
)
from pilotlight_core.model.versions.spec_checks import check_spec
from tests.builders.specs import function_spec, method

FIRST = CallHook(attribute="read")
LAST = CallHook(attribute="write", takes="answer")


def fault(pipeline: Pipeline, *, yields: bool = False, name: str = "Words") -> str:
    return pipeline_fault(pipeline, name, {"add": yields})


def test_a_companion_has_a_name_that_no_user_can_write() -> None:
    """And it says which class it belongs to, and where in a call it runs."""
    for kind, name in ((HookKind.PREPROCESS, "Words~pre"), (HookKind.POSTPROCESS, "Words~post")):
        assert companion_name("Words", kind) == name
        assert (is_companion(name), hook_place(name)) == (True, ("Words", kind.value))
    assert (is_companion("Words"), hook_place("Words")) == (False, ("Words", ""))
    with pytest.raises(BadInput, match="is not a name"):
        check_spec(function_spec("Words~pre"))


def test_a_pipeline_that_fits_is_let_through() -> None:
    """With one hook or both; its hooks come in the order in which they run."""
    both = Pipeline(preprocess=FIRST, postprocess=LAST, takes={"add": "numbers"})
    assert (fault(both), list(both.hooks)) == ("", [HookKind.PREPROCESS, HookKind.POSTPROCESS])
    assert fault(Pipeline(preprocess=FIRST, takes={"add": ""})) == ""
    assert fault(Pipeline(postprocess=LAST)) == ""
    spec = function_spec("Words", method("add", "add"), is_class=True, pipeline=both)
    check_spec(spec)
    assert (spec.stages, spec.longest_call_s) == (3, 3 * function_spec().longest_call_s)
    with pytest.raises(BadInput, match="a function with an engine has no code of its own, and no hooks"):
        check_spec(msgspec.structs.replace(spec, engine=EngineSpec(kind=EngineKind.SIM)))


@pytest.mark.parametrize(
    ("pipeline", "more", "why"),
    [
        (Pipeline(preprocess=FIRST, takes={"add": ""}), {"name": ""}, "for classes"),
        (Pipeline(preprocess=FIRST, takes={"add": ""}), {"name": "W" * 59}, "at most 58 characters"),
        (Pipeline(), {}, "expected a hook"),
        (Pipeline(postprocess=LAST), {"yields": True}, "add yields"),
        (Pipeline(postprocess=CallHook(attribute="write")), {}, "takes one parameter"),
        (Pipeline(preprocess=FIRST), {}, "expected each method"),
        (Pipeline(preprocess=FIRST, takes={"add": "a b"}), {}, "names of parameters"),
        (Pipeline(preprocess=CallHook(attribute="a.b"), takes={"add": ""}), {}, "expected names of methods"),
        (Pipeline(preprocess=CallHook(attribute="a", cpu=0.01), takes={"add": ""}), {}, r"cpu=0\.01"),
        (Pipeline(preprocess=CallHook(attribute="a", memory=1), takes={"add": ""}), {}, "memory is out of range"),
        (Pipeline(preprocess=CallHook(attribute="a", max_containers=0), takes={"add": ""}), {}, "max_containers=0"),
        (Pipeline(preprocess=CallHook(attribute="a", max_inputs=0), takes={"add": ""}), {}, "max_inputs=0"),
        (Pipeline(preprocess=CallHook(attribute="a", version="ver_1"), takes={"add": ""}), {}, "the platform says"),
    ],
)
def test_a_pipeline_that_cannot_be_is_refused_with_its_reason(
    pipeline: Pipeline, more: dict[str, Any], why: str
) -> None:
    """It comes from tenants, who may write anything."""
    with pytest.raises(AssertionError, match=why):
        assert fault(pipeline, **more) == ""


def test_a_user_makes_no_companion() -> None:
    """Its specification is the platform's to write."""
    with pytest.raises(BadInput, match="made by the platform"):
        check_spec(function_spec("Words", method("add", "add"), is_class=True, hook=HookKind.PREPROCESS))
