"""Functions: what a decorated function keeps, what one found by name knows, and how options of a call are checked."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight import App, BadInput, Client, Function

app = App("functions")


def embed(text: str) -> list[float]:
    return [float(len(text))]


@app.gpu_function
def double(x: int) -> int:
    return 2 * x


def test_a_function_keeps_what_it_wraps() -> None:
    """It has the name and module of the function, and the function itself."""
    decorated = App("tests").gpu_function(embed)
    assert decorated.__wrapped__ is embed
    assert (decorated.__name__, decorated.__module__, decorated.name) == ("embed", __name__, "embed")
    assert str(decorated.ref) == "tests.embed"


def test_a_function_by_name_has_no_code_here() -> None:
    """It runs nothing and has no spec on this side, and names a class's method as the way to call it."""
    found = Function.from_name("other:search", "embed", version="canary", method="go")
    assert found.target.label == "other:search.embed@canary.go"
    assert Function.from_name("a", "b", version=3).ref.pin == "v3"
    with pytest.raises(BadInput, match="was found by name"):
        found.local(1)
    with pytest.raises(BadInput, match="was found by name"):
        _ = found.spec
    with pytest.raises(AttributeError, match=r"Function\.from_name\('search', 'Model', method='embed'\)"):
        Function.from_name("search", "Model").embed  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'embed'"):
        double.embed  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("names", "field"),
    [
        ({"app": "a.b", "name": "c"}, "app"),
        ({"app": "a", "name": "c d"}, "name"),
        ({"app": "x y:a", "name": "c"}, "tenant"),
        ({"app": "a", "name": "c", "version": "v 1"}, "version"),
    ],
)
def test_a_function_by_name_refuses_a_part_that_is_no_name(names: dict[str, str], field: str) -> None:
    """The error names the part."""
    with pytest.raises(BadInput, match="is not a name") as caught:
        Function.from_name(**names)
    assert caught.value.more["field"] == field


@pytest.mark.parametrize(
    ("options", "field", "message"),
    [
        ({"id": "mine"}, "id", "expected cid_ and 8 to 60"),
        ({"deadline": 0}, "deadline", "expected seconds, more than 0"),
        ({"deadline": float("nan")}, "deadline", "expected seconds, more than 0"),
        ({"idempotency_key": ""}, "idempotency_key", "expected 1 to 255 visible ASCII"),
        ({"idempotency_key": "two words"}, "idempotency_key", "expected 1 to 255 visible ASCII"),
        ({"idempotency_key": "x" * 256}, "idempotency_key", "expected 1 to 255 visible ASCII"),
        ({"idempotency_key": "auto", "on_stage": print}, "on_stage", "tells no stages"),
        ({"sticky": ""}, "sticky", "expected 1 to 256 printable ASCII"),
        ({"sticky": "x" * 257}, "sticky", "expected 1 to 256 printable ASCII"),
    ],
)
def test_options_are_checked(options: dict[str, Any], field: str, message: str) -> None:
    """The error names the option, and nothing is sent."""
    with pytest.raises(BadInput, match=message) as caught:
        double.options(**options)
    assert caught.value.more["field"] == field


def test_options_add_up_and_leave_the_function_as_it_is() -> None:
    """Options that are not given stay, the client too; the function itself keeps its own."""
    with Client(url="http://127.0.0.1:9", api_key="k") as client:
        once = double.options(deadline=3, client=client)
        twice = once.options(id="cid_12345678")
        assert (twice.target.settings.deadline, twice.target.settings.id) == (3, "cid_12345678")
        assert twice.remote._client is client
    assert double.target.settings.deadline is None
