"""Functions that answer as others would."""

from __future__ import annotations

import pytest

from pilotlight_core.model.spec import MethodSpec, Mode
from pilotlight_gateway.schemas.like_methods import methods_fault
from tests.builders.specs import method

TEXT = {"properties": {"text": {"type": "string"}}}
ASKED = method(input_schema=TEXT, output_schema={"type": "string"})


@pytest.mark.parametrize(
    ("offered", "why"),
    [
        (ASKED, ""),
        (method(attribute="other", input_schema=TEXT, output_schema={"type": "string"}, is_async=True), ""),
        (method(input_schema=TEXT | {"description": "x"}, output_schema={"type": "string"}), ""),
        (method("generate"), "it is a class"),
        (method(mode=Mode.GENERATOR), "it yields, or returns, where the other one does not"),
        (method(output_schema={"type": "string"}), "the arguments of it are others"),
        (method(input_schema=TEXT), "the answer of it is another"),
    ],
)
def test_a_plain_function_is_run_by_one_with_the_same_hints(offered: MethodSpec, why: str) -> None:
    """Whatever it is called, and however it runs."""
    assert methods_fault((ASKED,), (offered,)) == why


def test_a_class_has_the_same_methods_and_may_have_more() -> None:
    """By their names."""
    both = (method("one"), method("two"))
    assert methods_fault((method("two"),), both) == ""
    assert methods_fault(both, (method("two"),)) == "it has no method one"
    assert methods_fault(both, (method("one"), method("two", mode=Mode.GENERATOR))) == (
        "its method two yields, or returns, where the other one does not"
    )
