"""What a function may have its containers do before calls reach them."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.rehearsals.rehearsal import (
    MOST_EXAMPLE_BYTES,
    MOST_WARMUPS,
    CheckExample,
    Rehearsal,
    WarmupExample,
    rehearsal_fault,
)
from pilotlight_core.model.spec import Batching
from pilotlight_core.model.versions.manifest_codec import REHEARSAL, needs_of
from pilotlight_core.model.versions.spec_checks import check_spec
from tests.builders.specs import function_spec, method

CLASS = {"embed": 8, "spell": 0, "most": 1_000}
ONE = WarmupExample(inputs=(b"1",))


@pytest.mark.parametrize(
    ("given", "batches"),
    [
        ({}, CLASS),
        ({"warmup": (ONE,)}, {"": 0}),
        ({"warmup": (ONE,)}, {"spell": 0}),
        ({"warmup": (WarmupExample(method="embed", inputs=(b"1",) * 8),)}, CLASS),
        ({"example": CheckExample(method="spell", input=b"1", output=b"2", tolerance=0.0)}, CLASS),
        ({"checks": ("healthy",), "check_every": 5.0, "check_timeout": 300.0}, CLASS),
    ],
)
def test_what_fits_the_methods_is_allowed(given: dict[str, Any], batches: dict[str, int]) -> None:
    """A method without a name is the only one."""
    assert rehearsal_fault(Rehearsal(**given), batches) == ("", "")


@pytest.mark.parametrize(
    ("given", "field", "why"),
    [
        ({"warmup": (ONE,)}, "warmup", "an example must name a method; its methods: embed, spell, most"),
        ({"warmup": (WarmupExample(method="gone", inputs=(b"1",)),)}, "warmup", "there is no method 'gone'"),
        ({"warmup": (WarmupExample(method="embed", inputs=(b"1",) * 9),)}, "warmup", "batches of at most 8"),
        ({"warmup": (WarmupExample(method="spell", inputs=(b"1",) * 2),)}, "warmup", "one input at a time"),
        ({"warmup": (WarmupExample(method="spell", inputs=()),)}, "warmup", "0 inputs"),
        ({"warmup": (WarmupExample(method="most", inputs=(b"1",) * 1_000),) * 3}, "warmup", "2000 are the most"),
        ({"warmup": (ONE,) * (MOST_WARMUPS + 1)}, "warmup", "32 are the most"),
        ({"warmup": (WarmupExample(method="spell", inputs=(b"x" * (MOST_EXAMPLE_BYTES + 1),)),)}, "warmup", "bytes"),
        ({"checks": ("a",) * 17}, "checks", "16 are the most"),
        ({"checks": ("a.b",)}, "checks", "expected names of methods"),
        ({"checks": ("a" * 101,)}, "checks", "at most 100 characters"),
        ({"example": CheckExample(method="gone", input=b"", output=b"")}, "check", "no method 'gone'"),
        ({"example": CheckExample(method="spell", input=b"", output=b"", tolerance=2.0)}, "check", "tolerance=2"),
        ({"check_every": 1.0}, "check_every", "1 is out of range: expected 5 to 86400 seconds, or 0 for never"),
        ({"check_every": -1.0}, "check_every", "out of range"),
        ({"check_timeout": 0.0}, "check_timeout", "at most 300 seconds"),
    ],
)
def test_what_does_not_is_refused_with_its_option(given: dict[str, Any], field: str, why: str) -> None:
    """And says what was expected."""
    at_fault, text = rehearsal_fault(Rehearsal(**given), CLASS)

    assert at_fault == field
    assert why in text


def test_a_specification_is_refused_by_it() -> None:
    """As by all that it says."""
    methods = (method("embed", batching=Batching(max_batch_size=2)), method("spell"))
    spec = function_spec("f", *methods, is_class=True, rehearsal=Rehearsal(warmup=(ONE,)))

    with pytest.raises(BadInput, match="f: warmup: an example must name a method") as refused:
        check_spec(spec)
    assert refused.value.more["field"] == "warmup"
    check_spec(function_spec("f", *methods, is_class=True, rehearsal=Rehearsal(checks=("healthy",))))


def test_agents_must_know_it() -> None:
    """One that does not would let calls in at once."""
    assert needs_of(function_spec("f")) == ()
    assert needs_of(function_spec("f", rehearsal=Rehearsal(warmup=(ONE,)))) == (REHEARSAL,)
