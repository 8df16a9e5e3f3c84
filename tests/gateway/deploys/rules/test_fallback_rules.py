"""Deploys of functions with fallbacks."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.fallbacks.fallback import Fallback
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
