"""Request bodies within bounds: of size, before anything is parsed; of time; and of memory over all requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.types import Receive, Scope

from pilotlight_core.model.errors import BadInput, DeadlineExceeded
from pilotlight_gateway.http.exchange import header
from pilotlight_gateway.internal import Budget

LATE = "The request's body did not arrive in time."


class ClientGone(Exception):
    """The client hung up before its request was whole; there is nobody to answer."""


@dataclass(frozen=True, kw_only=True)
class BodyLimits:
    """What a body may be."""

    size: int
    seconds: float = 30.0
    """For all of it to arrive: a bound for those who trickle bytes to hold a connection."""
    idle_seconds: float = 30.0
    """Between two pieces."""


def check_announced(scope: Scope, limits: BodyLimits) -> None:
    """Refuse by Content-Length, before a byte is read.

    Raises:
        BadInput: `too_large`, or `bad_request` when it is no number.
    """
    announced = header(scope, b"content-length")
    if not announced:
        return
    if not announced.isdigit():
        raise BadInput("Content-Length is not a number.", code="bad_request")
    if int(announced) > limits.size:
        raise too_large(limits)


def too_large(limits: BodyLimits) -> BadInput:
    """The refusal of a body beyond `limits`."""
    return BadInput(f"The body is larger than {limits.size} bytes.", code="too_large", limit=limits.size)


async def pieces(scope: Scope, receive: Receive, limits: BodyLimits) -> AsyncIterator[bytes]:
    """The body as it arrives.

    Raises:
        BadInput: `too_large`, whatever Content-Length said.
        DeadlineExceeded: if it does not arrive in time.
        ClientGone: if the client hangs up.
    """
    check_announced(scope, limits)
    loop = asyncio.get_running_loop()
    size, ends, more = 0, loop.time() + limits.seconds, True
    while more:
        piece, more = await _next(receive, min(ends, loop.time() + limits.idle_seconds))
        size += len(piece)
        if size > limits.size:
            raise too_large(limits)
        yield piece


async def _next(receive: Receive, until: float) -> tuple[bytes, bool]:
    """The next piece and whether there are more."""
    try:
        async with asyncio.timeout_at(until):
            message = await receive()
    except TimeoutError:
        raise DeadlineExceeded(LATE) from None
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message.get("body", b""), message.get("more_body", False)


async def read_body(scope: Scope, receive: Receive, limits: BodyLimits, budget: Budget) -> bytes:
    """The whole body. Its bytes are counted in `budget` while it arrives and stay counted: give them back.

    Raises:
        As `pieces`, and Unavailable when the budget is used up: then nothing stays counted.
    """
    check_announced(scope, limits)
    parts: list[bytes] = []
    held, more = 0, True
    try:
        # Most bodies are here already: no generator, one timer, and that only until the last piece.
        async with asyncio.timeout(limits.seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                piece, more = message.get("body", b""), message.get("more_body", False)
                if held + len(piece) > limits.size:
                    raise too_large(limits)
                budget.take(len(piece))
                held += len(piece)
                parts.append(piece)
    except BaseException as error:
        budget.give_back(held)
        if isinstance(error, TimeoutError):
            raise DeadlineExceeded(LATE) from None
        raise
    return parts[0] if len(parts) == 1 else b"".join(parts)
