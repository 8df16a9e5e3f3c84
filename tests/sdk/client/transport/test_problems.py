"""Problem documents as exceptions."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from pilotlight.client.transport.problems import error_from, error_of
from pilotlight.definitions import errors
from pilotlight_core.model.errors import CLASSES, CODES
from tests.sdk.scripted import problem_document

EXCEPTIONS = [
    kind
    for kind in vars(builtins).values()
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning | ExceptionGroup)
]


@pytest.mark.parametrize("code", sorted(set(CODES) - {"function_raised"}))
def test_each_code_has_its_class(code: str) -> None:
    """The error has the text, the wait and other fields of the document."""
    error = error_from(problem_document(code, "so it is", retry_after=2, field="x", traceback="Trace"))

    assert type(error) is CLASSES.get(code, errors.PilotlightError)
    assert (error.wire_code, error.detail, error.retry_after) == (code, "so it is", 2.0)
    assert (error.more["field"], error.more["request_id"]) == ("x", "req_1")
    assert "Trace" in error.__notes__[0]


@pytest.mark.parametrize("kind", EXCEPTIONS)
def test_every_builtin_exception_keeps_its_type_where_possible(kind: type[Exception]) -> None:
    """Each is a FunctionRaised, too."""
    error: Any = error_from(problem_document("function_raised", f"{kind.__name__}: so it is", traceback="Trace"))

    assert isinstance(error, errors.FunctionRaised)
    assert error.remote_traceback == "Trace"
    assert "so it is" in str(error)
    special = (StopIteration, StopAsyncIteration, UnicodeDecodeError, UnicodeEncodeError, UnicodeTranslateError)
    assert isinstance(error, kind) or issubclass(kind, special)
    assert not isinstance(error, StopIteration | StopAsyncIteration)


def test_an_exception_of_the_tenants_own_keeps_its_name() -> None:
    """Its class is not imported."""
    error = error_from(problem_document("function_raised", "app.MyError: no"))
    assert type(error).__mro__[1] is errors.FunctionRaised
    assert str(error) == "app.MyError: no"
    assert str(error_from(problem_document("function_raised", "SystemExit: 3"))) == "SystemExit: 3"


@pytest.mark.parametrize(
    ("detail", "traceback", "kind", "text"),
    [
        ("ValueError: a\nb", "", ValueError, "a\nb"),
        ("KeyError: 'x'", "", KeyError, "'x'"),
        ("ValueError: ", "", ValueError, "ValueError"),
        ("it raised", "Traceback\n  File x\nTypeError: no\n", TypeError, "no"),
        ("it raised!", "", errors.FunctionRaised, "Exception: it raised!"),
    ],
)
def test_the_type_is_read_from_the_detail_or_the_traceback(detail: str, traceback: str, kind: type, text: str) -> None:
    """The last line of the traceback serves if the detail has no type."""
    error = error_from(problem_document("function_raised", detail, traceback=traceback))
    assert isinstance(error, kind)
    assert str(error) == text


def test_an_answer_without_a_problem_document_has_the_code_of_its_status() -> None:
    """A proxy's page is an example."""
    error = error_of(503, b"<html>busy</html>", retry_after="3", should_retry="false")
    assert isinstance(error, errors.Unavailable)
    assert (error.retry_after, error.more["should_retry"]) == (3.0, False)
    assert "busy" in error.detail
    assert error_of(418, b"").wire_code == "internal"
    of_openai = error_of(404, b'{"error": {"message": "There is no model.", "code": "model_not_found"}}')
    assert (of_openai.wire_code, of_openai.detail) == ("model_not_found", "There is no model.")
    assert error_of(404, b'{"error": {"message": "No."}}').wire_code != ""
    assert error_of(429, b"{}", retry_after="Wed, 21 Oct").retry_after is None
