"""What can be wrong with a request is said precisely, and costs little."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import Priority
from pilotlight_core.model.values import MAX_DEPTH, depth_within
from pilotlight_gateway.bodies.call_requests import (
    LONGEST_MEDIA_TYPE,
    BodyFormat,
    format_of_answer,
    format_of_body,
    json_depth_within,
    pack_arguments,
    priority_of,
    read_call,
    seconds_to_wait,
)
from tests.work_done import calls_made

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(alphabet='a"\\[]{}', max_size=6),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=4)
        | st.dictionaries(st.text(alphabet='b"{', max_size=2), inner, min_size=1, max_size=3)
    ),
    max_leaves=40,
)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@given(JSON_VALUES, st.integers(1, 8))
def test_depth_by_brackets_is_depth_by_walking(value: Any, limit: int) -> None:
    """Counting brackets outside strings says what visiting every value would say."""
    body = {"input": value, "more": [[0]] * 40}  # enough brackets that they are really counted

    assert json_depth_within(msgspec.json.encode(body), limit) == depth_within(body, limit + 1)


@pytest.mark.parametrize("kind", [BodyFormat.JSON, BodyFormat.MSGPACK])
def test_input_may_be_nested_to_the_limit_and_no_deeper(kind: BodyFormat) -> None:
    """Sixty-four levels pass in either format, one more does not, and a hundred thousand do no harm."""
    encode = msgspec.json.encode if kind is BodyFormat.JSON else msgspec.msgpack.encode
    read_call(encode({"input": {"a": nested(MAX_DEPTH - 1)}}), kind)
    for depth in (MAX_DEPTH, 400):
        with pytest.raises(BadInput, match="nested deeper") as caught:
            read_call(encode({"input": {"a": nested(depth)}}), kind)
        assert caught.value.more["field"] == "input"
    bomb = (
        b'{"input":{"a":' + b"[" * 100_000 if kind is BodyFormat.JSON else b"\x81\xa5input\x81\xa1a" + b"\x91" * 100_000
    )
    with pytest.raises(BadInput, match="nested deeper"):
        read_call(bomb, kind)


def test_ten_megabytes_of_brackets_are_judged_in_a_moment() -> None:
    """The depth check goes over the body as a whole, at most once per level; it looks at no bracket by itself."""
    body = b'{"input":{"a":[' + b",".join([b"[[]]"] * 2_000_000) + b"]}}"
    assert json_depth_within(body)

    assert calls_made(lambda: json_depth_within(body)) < MAX_DEPTH


@pytest.mark.parametrize(
    ("body", "code", "field", "said"),
    [
        (b'{"input": tru', "bad_request", None, "truncated|malformed"),
        (b'{"input": {"a": nope}}', "bad_request", None, "byte 20"),
        (b'{"input": {}} extra', "bad_request", None, "trailing"),
        (b"[]", "bad_input", "body", "expected an object, got a list"),
        (b'{"inputs": {}}', "bad_input", "inputs", 'unknown field.*belongs into "input"'),
        (b'{"input": 3}', "bad_input", "input", "expected an object, got a whole number"),
        (b'{"deadline_ms": "soon"}', "bad_input", "deadline_ms", "expected a number, got text"),
        (b'{"id": "x"}', "bad_input", "id", "cid_"),
        (b'{"input": {"a": 1}, "parameters": {"a": 2}}', "bad_input", "parameters.a", "both"),
    ],
)
def test_a_body_that_is_wrong_says_where(body: bytes, code: str, field: str | None, said: str) -> None:
    """Unreadable is 400 with the position; readable but wrong is 422 with the field."""
    with pytest.raises(BadInput, match=said) as caught:
        read_call(body, BodyFormat.JSON)

    assert (caught.value.wire_code, caught.value.more.get("field")) == (code, field)


@pytest.mark.parametrize(
    ("body", "kind"), [(b'{"method": "\xff"}', BodyFormat.JSON), (b"\x81\xa1\xff\x01", BodyFormat.MSGPACK)]
)
def test_text_that_is_no_text_is_refused(body: bytes, kind: BodyFormat) -> None:
    """Strings have to be UTF-8."""
    with pytest.raises(BadInput) as caught:
        read_call(body, kind)

    assert caught.value.wire_code == "bad_request"


@given(st.binary(max_size=200), st.sampled_from([BodyFormat.JSON, BodyFormat.MSGPACK]))
def test_any_bytes_are_a_call_or_bad_input(body: bytes, kind: BodyFormat) -> None:
    """Nothing but BadInput comes out of garbage."""
    try:
        read_call(body, kind)
    except BadInput:
        return


def test_parameters_and_input_are_the_arguments_together() -> None:
    """They are merged, and it is remembered where each one stood."""
    asked = read_call(b'{"input": {"a": 1}, "parameters": {"b": 2}}', BodyFormat.JSON)

    assert asked.input == {"a": 1, "b": 2}
    assert asked.parameters == {"b": 2}


def test_an_empty_body_is_a_call_without_arguments() -> None:
    """`curl -X POST` is enough for a function that takes nothing."""
    assert read_call(b"", BodyFormat.JSON).input == {}


def test_an_integer_beyond_64_bits_cannot_travel() -> None:
    """JSON has it, msgpack has not."""
    with pytest.raises(BadInput) as caught:
        pack_arguments(read_call(b'{"input": {"a": 123456789012345678901234567890}}', BodyFormat.JSON).input)

    assert caught.value.more["field"] == "input"


@pytest.mark.parametrize(
    ("accept", "found"),
    [
        (b"", BodyFormat.JSON),
        (b"*/*", BodyFormat.JSON),
        (b"application/json", BodyFormat.JSON),
        (b"text/html, application/msgpack", BodyFormat.MSGPACK),
        (b"text/event-stream", BodyFormat.EVENTS),
        (b"application/json;q=0, text/event-stream", BodyFormat.EVENTS),
    ],
)
def test_the_first_acceptable_format_is_given(accept: bytes, found: BodyFormat) -> None:
    """In the order in which the client names them."""
    assert format_of_answer(accept) is found


@pytest.mark.parametrize(
    ("reads", "header", "code"),
    [
        (format_of_answer, b"image/png", "not_acceptable"),
        (format_of_body, b"text/plain", "unsupported_media_type"),
        (format_of_body, b"application/x-www-form-urlencoded", "unsupported_media_type"),
        (format_of_body, b"text/event-stream", "unsupported_media_type"),
    ],
)
def test_a_format_that_we_do_not_have_is_refused(reads: Any, header: bytes, code: str) -> None:
    """With the code for it."""
    with pytest.raises(BadInput) as caught:
        reads(header)

    assert caught.value.wire_code == code


def test_a_caller_can_only_lower_its_class() -> None:
    """Asking for more than the function's own class changes nothing."""
    assert priority_of(Priority.STANDARD, b"batch") is Priority.BATCH
    assert priority_of(Priority.STANDARD, b"Interactive") is Priority.STANDARD
    assert priority_of(Priority.INTERACTIVE, b"") is Priority.INTERACTIVE
    with pytest.raises(BadInput):
        priority_of(Priority.STANDARD, b"urgent")


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan])
def test_a_deadline_must_lie_ahead(wrong: float) -> None:
    """Zero, the past and NaN are refused; more than the function may take means as much as it may take."""
    with pytest.raises(BadInput):
        seconds_to_wait(wrong, 10.0)
    assert seconds_to_wait(2_000.0, 10.0) == 2.0
    assert seconds_to_wait(1e9, 10.0) == 10.0
    assert seconds_to_wait(None, 10.0) == 10.0


def test_media_types_with_padding_are_refused_before_they_are_kept() -> None:
    """What is remembered of headers is small; the refusal names the header and its code."""
    assert format_of_body(b"application/json;".ljust(LONGEST_MEDIA_TYPE, b"x")) is BodyFormat.JSON
    with pytest.raises(BadInput, match="Content-Type is longer than 256 bytes") as body:
        format_of_body(b"application/json;".ljust(LONGEST_MEDIA_TYPE + 1, b"x"))
    with pytest.raises(BadInput, match="Accept is longer than 256 bytes") as accept:
        format_of_answer(b"*/*".ljust(LONGEST_MEDIA_TYPE + 1))

    assert (body.value.wire_code, accept.value.wire_code) == ("unsupported_media_type", "not_acceptable")
