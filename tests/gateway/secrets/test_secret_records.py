"""What is stored of secrets."""

from __future__ import annotations

from msgspec.structs import replace

from pilotlight_gateway.secrets.secret_records import revision_of
from tests.gateway.secrets.makers import secret


def test_another_value_is_another_revision() -> None:
    """Also if it is what it was before: it is sealed anew, and no two sealed ones are alike."""
    records = {"a": secret("a", sealed=b"1"), "b": secret("b", sealed=b"2")}
    before = revision_of(records)

    assert revision_of({"b": records["b"], "a": records["a"]}) == before
    assert revision_of({**records, "b": replace(records["b"], sealed=b"3")}) != before
    assert revision_of({"a": records["a"]}) != before


def test_what_else_is_said_of_a_secret_is_no_other_revision() -> None:
    """Its containers have the same value."""
    one = secret("a", sealed=b"1")
    assert revision_of({"a": replace(one, changed_by="k2", number=9)}) == revision_of({"a": one})


def test_a_revision_is_computed_as_ever() -> None:
    """Containers that an earlier release has loaded report it."""
    assert revision_of({"a": secret("a", sealed=b"1"), "b": secret("b", sealed=b"2")}) == "074239ecae02aa6e"
