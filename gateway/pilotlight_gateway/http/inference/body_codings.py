"""Bodies that are compressed: read within a bound, and written for clients that ask for it."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits, too_large

WINDOWS = {b"gzip": 16 + zlib.MAX_WBITS, b"deflate": zlib.MAX_WBITS}
"""zlib's name of each coding."""
LONGEST_RATIO = 1_032
"""Deflate makes no more of a byte."""
IN_THREAD_BYTES = 16 * 1024
"""A longer body keeps a thread busy instead of the event loop; zlib lets others run meanwhile."""
LEAST_BYTES = 1_024
"""Below it an answer gets no smaller."""
LEVEL = 1


@contextmanager
def held_plain(budget: ByteBudget, coding: bytes, body: bytes, limits: BodyLimits, tenant: str) -> Iterator[None]:
    """Count what a compressed body may become, until the block ends; a plain one is counted already."""
    if coding in (b"", b"identity"):
        yield
        return
    with budget.holding(min(limits.size, LONGEST_RATIO * len(body)), tenant):
        yield


async def plain_body(body: bytes, coding: bytes, limits: BodyLimits) -> bytes:
    """The body without its coding.

    Raises:
        BadInput: `unsupported_media_type`, `bad_request` if it is not in that coding, or `too_large`.
    """
    coding = coding.strip().lower()
    if coding in (b"", b"identity"):
        return body
    window = WINDOWS.get(coding)
    if window is None:
        shown = coding[:40].decode("latin-1")
        raise BadInput(f"Content-Encoding {shown!r} is not known: gzip and deflate are.", code="unsupported_media_type")
    if len(body) <= IN_THREAD_BYTES:
        return inflate_body(body, window, limits)
    return await asyncio.to_thread(inflate_body, body, window, limits)


def inflate_body(body: bytes, window: int, limits: BodyLimits) -> bytes:
    """See `plain_body`; `window` is zlib's."""
    reader = zlib.decompressobj(window)
    try:
        plain = reader.decompress(body, limits.size + 1)
    except zlib.error as error:
        raise BadInput(f"The body is not in its Content-Encoding: {error}.", code="bad_request") from None
    if len(plain) > limits.size:
        raise too_large(limits)
    if not reader.eof or reader.unused_data:
        why = "more follows behind its end" if reader.eof else "it is cut off"
        raise BadInput(f"The body is not in its Content-Encoding: {why}.", code="bad_request")
    return plain


def coding_wanted(accept: bytes) -> bytes:
    """The coding for an answer, by an Accept-Encoding header; b"": none."""
    for part in accept[:256].lower().split(b","):
        name, *options = (piece.strip() for piece in part.split(b";"))
        if name in WINDOWS and not any(option in (b"q=0", b"q=0.0") for option in options):
            return name
    return b""


async def coded_body(pieces: list[bytes], coding: bytes) -> bytes:
    """An answer in a coding."""
    body = b"".join(pieces)
    if len(body) <= IN_THREAD_BYTES:
        return deflate_body(body, WINDOWS[coding])
    return await asyncio.to_thread(deflate_body, body, WINDOWS[coding])


def deflate_body(body: bytes, window: int) -> bytes:
    writer = zlib.compressobj(LEVEL, zlib.DEFLATED, window)
    return writer.compress(body) + writer.flush()
