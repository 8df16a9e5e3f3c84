"""Compressed bodies, within their bounds."""

from __future__ import annotations

import gzip
import os
import zlib

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.http.inference.body_codings import (
    coded_body,
    coding_wanted,
    held_plain,
    plain_body,
)
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits

LIMITS = BodyLimits(size=100_000)


@pytest.mark.parametrize("size", [10, 90_000])
async def test_what_is_coded_is_read(size: int) -> None:
    """In both codings, at once and in a thread; plain bodies as they are."""
    body = os.urandom(size)
    for coding in (b"gzip", b"deflate"):
        assert await plain_body(await coded_body([body[:5], body[5:]], coding), coding, LIMITS) == body
    assert await plain_body(body, b" Identity", LIMITS) == body
    assert await plain_body(gzip.compress(body), b"GZIP", LIMITS) == body


@pytest.mark.parametrize(
    ("body", "coding", "code"),
    [
        (gzip.compress(b"0" * 100_001), b"gzip", "too_large"),
        (zlib.compress(b"0" * 10**7), b"deflate", "too_large"),
        (gzip.compress(b"0" * 100)[:-3], b"gzip", "bad_request"),
        (gzip.compress(b"0" * 100) + b"more", b"gzip", "bad_request"),
        (b"nonsense", b"deflate", "bad_request"),
        (b"", b"gzip", "bad_request"),
        (b"x", b"br", "unsupported_media_type"),
    ],
)
async def test_what_is_wrong_ends_within_the_bound(body: bytes, coding: bytes, code: str) -> None:
    """A bomb is not unpacked; half a body is none."""
    with pytest.raises(BadInput) as refused:
        await plain_body(body, coding, LIMITS)
    assert refused.value.wire_code == code


def test_what_a_body_may_become_is_held() -> None:
    """By its length before it is unpacked; a plain one is counted already."""
    budget = ByteBudget(limit=10 * LIMITS.size)
    for coding, body, held in ((b"gzip", b"x" * 200, LIMITS.size), (b"gzip", b"x", 1_032), (b"", b"x" * 200, 0)):
        with held_plain(budget, coding, body, LIMITS, "acme"):
            assert budget.used == held
    assert budget.used == 0


@pytest.mark.parametrize(
    ("accept", "coding"),
    [
        (b"", b""), (b"gzip", b"gzip"), (b"br, deflate;q=0.5, gzip", b"deflate"), (b"gzip;q=0, deflate", b"deflate"),
        (b"*", b""), (b"identity", b""), (b"x" * 10**5, b""),
    ],
)  # fmt: skip
def test_an_answer_is_coded_for_who_asks(accept: bytes, coding: bytes) -> None:
    """By the first that is known."""
    assert coding_wanted(accept) == coding
