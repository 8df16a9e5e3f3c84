"""Which functions may have shadows."""

from typing import Any

import pytest

from pilotlight_core.model.pipelines.pipeline import HookKind
from pilotlight_core.model.rollouts.shadow_rules import why_no_shadows
from tests.builders.specs import function_spec


def test_a_function_that_stays_within_its_container_may_have_shadows() -> None:
    assert why_no_shadows(function_spec()) == ""
    assert why_no_shadows(function_spec(network=(), secrets={})) == ""


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"network": ("api.example.com:443",)}, "may connect to api.example.com:443"),
        ({"secrets": {"TOKEN": "hub"}}, "has secrets"),
        ({"hook": HookKind.PREPROCESS}, "has hooks"),
    ],
)
def test_what_could_be_done_twice_is_not_shadowed(options: dict[str, Any], why: str) -> None:
    assert why in why_no_shadows(function_spec(**options))
