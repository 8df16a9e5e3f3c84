"""The fields of a body, unread."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.request_fields import MOST_COLONS, MOST_NAMED, is_given, read_fields

NAMES = frozenset({"a", "b"})


def test_known_fields_stay_as_they_came() -> None:
    """Null is as absent; of several of one name the last counts."""
    known, unknown = read_fields(b'{"a": [1,  2], "b": null, "c": 1, "a": 3}', NAMES)
    assert {name: bytes(memoryview(raw)) for name, raw in known.items()} == {"a": b"3"}
    assert unknown == ("c",)


def test_unknown_fields_are_named_while_they_are_few() -> None:
    """A body of nothing else takes no time."""
    some = {f"x{number}" * 50: 1 for number in range(100)}
    unknown = read_fields(msgspec.json.encode(some), NAMES).unknown
    assert len(unknown) == MOST_NAMED
    assert max(map(len, unknown)) == 64
    many = {str(number): 1 for number in range(MOST_COLONS + 1)}
    assert read_fields(msgspec.json.encode(many), NAMES).unknown == ()


@pytest.mark.parametrize("body", [b"", b"[]", b'"x"', b"{", b"null", b'{"a": }', b'{"a":' + b"[" * 100_000, b"\xff"])
def test_no_object(body: bytes) -> None:
    """It cannot be read, however deep."""
    with pytest.raises(BadInput) as refused:
        read_fields(body, NAMES)
    assert refused.value.wire_code == "bad_request"


@pytest.mark.parametrize("body", [b'{"a": "\xff"}', b'{"c": "\xff"}', b'{"a": {"\xc3": 1}}', b'{"a": "\xed\xa0\x80"}'])
def test_a_body_that_is_no_utf8_is_refused_also_within_a_value(body: bytes) -> None:
    """Values stay unread here, and whoever reads one later would fail as if the platform had."""
    with pytest.raises(BadInput, match="is not JSON") as refused:
        read_fields(body, NAMES)
    assert refused.value.wire_code == "bad_request"


def test_a_text_that_says_null_is_a_value() -> None:
    """Null itself is none."""
    assert is_given(msgspec.Raw(b'"null"'))
    assert is_given(msgspec.Raw(b"nullx"))
    assert not is_given(msgspec.Raw(b"null"))
