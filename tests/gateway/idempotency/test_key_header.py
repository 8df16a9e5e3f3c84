"""Reading the headers that ask for idempotency."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.idempotency.key_header import read_key, read_wait


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (b"8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"),
        (b'"8e03978e"', "8e03978e"),
        (b' "a b" ', "a b"),
        (rb'"a\"b\\c"', r'a"b\c'),
        (b"x" * 255, "x" * 255),
    ],
)
def test_a_key_comes_bare_or_quoted(value: bytes, key: str) -> None:
    """As Stripe's clients send it, and as the IETF's draft has it: both are the same key."""
    assert read_key(value) == key


@pytest.mark.parametrize("value", [b"", b'""', b"  ", b"a b", b"x" * 256, b'"' + b"x" * 256 + b'"', b"\xff", b"a\x00"])
def test_what_is_no_key_is_refused(value: bytes) -> None:
    """With the header's name."""
    with pytest.raises(BadInput, match="Idempotency-Key: expected") as refused:
        read_key(value)

    assert refused.value.wire_code == "bad_request"


@given(st.binary(max_size=300))
def test_any_bytes_are_a_key_or_refused(value: bytes) -> None:
    """Nothing else is raised, and nothing unbounded is let through."""
    with contextlib.suppress(BadInput):
        assert 1 <= len(read_key(value)) <= 255


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"", 0.0), (b"wait=5", 5.0), (b"respond-async, Wait = 10", 10.0), (b'wait="7"', 7.0), (b"wait=9;x=1", 9.0),
        (b"wait=100000", 300.0), (b"wait=-1", 0.0), (b"wait=1e9", 0.0), (b"waiting=3", 0.0), (b"wait", 0.0),
    ],
)  # fmt: skip
def test_how_long_a_caller_would_wait(value: bytes, seconds: float) -> None:
    """What is not understood is no preference (RFC 7240)."""
    assert read_wait(value) == seconds
