"""What a function may name as its fallback."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.fallbacks.fallback import TIERS_AT_MOST, Fallback, fallback_fault
from pilotlight_core.model.spec import Priority
from pilotlight_core.model.versions.manifest_codec import FALLBACK, needs_of
from pilotlight_core.model.versions.spec_checks import check_spec
from tests.builders.specs import function_spec

TOO_MANY = tuple(f"t{number}" for number in range(TIERS_AT_MOST + 1))


@pytest.mark.parametrize(
    ("fallback", "why"),
    [
        (Fallback("small"), ""),
        (Fallback("small", classes=("batch", "standard"), tiers=("free",)), ""),
        (Fallback("big"), "it names the function itself: name another one of the app"),
        (Fallback("small", classes=("urgent",)), "there is no class 'urgent': expected interactive, standard, batch"),
        (Fallback("small", tiers=TOO_MANY), "it names 33 tiers, and 32 are the most"),
    ],
)
def test_a_fallback_is_another_function_for_known_classes(fallback: Fallback, why: str) -> None:
    """Its tiers may come later."""
    assert fallback_fault(fallback, "big", tuple(Priority)) == why


@pytest.mark.parametrize("fallback", [Fallback("a.b"), Fallback(""), Fallback("small", tiers=("no tier",))])
def test_names_are_names(fallback: Fallback) -> None:
    """Of a function in the same app: a dot would be another app's."""
    with pytest.raises(BadInput):
        check_spec(function_spec("big", fallback=fallback))


def test_a_spec_is_refused_with_its_fault_and_agents_have_to_know_it() -> None:
    """Those of before refuse the specification, and are not chosen."""
    with pytest.raises(BadInput, match="big: fallback: it names the function itself"):
        check_spec(function_spec("big", fallback=Fallback("big")))
    spec = function_spec("big", fallback=Fallback("small"))
    check_spec(spec)
    assert needs_of(spec) == (FALLBACK,)
