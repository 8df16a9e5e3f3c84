"""Deploys of functions with fallbacks."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.fallbacks.fallback import Fallback
from pilotlight_core.model.pipelines.pipeline import CallHook, Pipeline
from pilotlight_gateway.deploys.rules.fallback_rules import check_fallbacks
from tests.builders.specs import function_spec, method


def test_a_fallback_is_a_function_of_the_same_deploy_with_the_same_hints() -> None:
    """It may have a fallback of its own, which is not used a second time."""
    small = function_spec("small", fallback=Fallback("big"))
    check_fallbacks([function_spec("big", fallback=Fallback("small")), small, function_spec("other")])


def test_one_that_is_not_there_or_is_another_kind_is_refused() -> None:
    """The error names what there is, or what differs."""
    big = function_spec("big", fallback=Fallback("small"))
    with pytest.raises(BadInput) as caught:
        check_fallbacks([big, function_spec("tiny")])
    assert caught.value.detail == ("big: fallback: there is no function small in this app; the others are tiny.")
    with pytest.raises(BadInput, match="small could not take its calls: the answer of it is another"):
        check_fallbacks([big, function_spec("small", method(output_schema={"type": "string"}))])


def test_a_class_with_hooks_takes_no_calls_of_one_without() -> None:
    """Of one with hooks it does, and a function without takes those of one with."""
    hooked = Pipeline(preprocess=CallHook(attribute="read"), takes={"": "a"})
    big, small = function_spec("big", fallback=Fallback("small")), function_spec("small")
    with_hooks = [msgspec.structs.replace(one, pipeline=hooked) for one in (big, small)]
    check_fallbacks(with_hooks)
    check_fallbacks([with_hooks[0], small])
    with pytest.raises(BadInput, match="small has hooks, and big has none"):
        check_fallbacks([big, with_hooks[1]])
