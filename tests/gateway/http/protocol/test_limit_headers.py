"""How a tenant stands, in OpenAI's words."""

from __future__ import annotations

import pytest

from pilotlight_gateway.http.protocol.limit_headers import duration_text, openai_limits


def test_the_nearer_of_two_limits_is_told() -> None:
    """The function's own, or the tenant's."""
    told = openai_limits([
        (b"ratelimit-policy", b'"requests";q=100;w=10,"cost";q=5;w=1;qu="x","function-requests";q=20;w=1'),
        (b"ratelimit", b'"requests";r=3;t=75,"cost";r=1,"function-requests";r=9'),
    ])  # fmt: skip
    assert dict(told) == {
        b"x-ratelimit-limit-requests": b"20",
        b"x-ratelimit-remaining-requests": b"3",
        b"x-ratelimit-reset-requests": b"1m15s",
    }


def test_tokens_are_told_too() -> None:
    """Where they are limited."""
    told = openai_limits([
        (b"ratelimit-policy", b'"tokens";q=1000;w=1;qu="tokens"'), (b"ratelimit", b'"tokens";r=10;t=1'),
    ])  # fmt: skip
    assert dict(told)[b"x-ratelimit-remaining-tokens"] == b"10"


def test_without_limits_nothing_is_told() -> None:
    """Nor of what nobody knows."""
    assert openai_limits([]) == []
    assert dict(openai_limits([(b"ratelimit-policy", b'"requests";q=1;w=1')])) == {b"x-ratelimit-limit-requests": b"1"}


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (59, "59s"), (360, "6m0s"), (3_723, "1h2m3s")])
def test_durations(seconds: int, text: str) -> None:
    """As OpenAI writes them."""
    assert duration_text(seconds) == text
