"""Reads request bodies within bounds of size, time, and memory over all requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from starlette.types import Receive, Scope

from pilotlight_core.model.errors import BadInput, DeadlineExceeded
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.http.protocol.http_exchange import SERVED, ClientGone, ServerRequest, header

LATE = "The request's body did not arrive in time."
SLOW = "The request's body came too slowly: of one like this at least {least} bytes have to come in {window:g} s."
LAST_LOOK_S = 0.25
"""For bytes that have arrived when the time is up: after a pause, a process runs its timers before it reads sockets."""


@dataclass(frozen=True, kw_only=True)
class BodyLimits:
    """The bounds of a body."""

    size: int
    grace: float = 5.0
    """Seconds before its rate counts."""
    rate: int = 64 * 1024
    """The least bytes a second of a body, so that a slow client holds memory only shortly."""
    window: float = 0.0
    """Seconds by which a streamed body may fall behind that rate; 0.0: its rate does not count."""
    seconds: float = 1_800.0
    """For a whole streamed body, which also waits for the disk."""
    idle_seconds: float = 30.0
    """Between two pieces of a streamed body."""


def check_announced(scope: Scope, limits: BodyLimits) -> None:
    """Refuse by Content-Length, before a byte is read.

    Raises:
        BadInput: `too_large`, or `bad_request` if it is no number.
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


class MinThroughput:
    """Whether a streamed body arrives fast enough. Pure.

    Waiting uses up `window`, and each piece gives back time by its size. Handling a piece takes no time from it.
    """

    def __init__(self, limits: BodyLimits) -> None:
        self._limits = limits
        self.left = limits.window
        """Seconds left to wait for the next piece."""

    def came(self, size: int, waited_s: float) -> None:
        """A piece of `size` bytes came after `waited_s` seconds."""
        self.left = min(self._limits.window, self.left - waited_s + size / self._limits.rate)

    @property
    def slow(self) -> bool:
        """Whether the time is used up, but for a last look."""
        return self.left < LAST_LOOK_S


async def pieces(
    scope: Scope, receive: Receive, limits: BodyLimits, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[bytes]:
    """The body as it arrives.

    Raises:
        BadInput: `too_large`, whatever Content-Length said.
        DeadlineExceeded: `slow_body`: it was too late, or too slow.
        ClientGone: the client hung up.
    """
    check_announced(scope, limits)
    pace = MinThroughput(limits) if limits.window else None
    size, ends, more = 0, clock() + limits.seconds, True
    while more:
        began = clock()
        wait_s = min(ends - began, limits.idle_seconds)
        if pace is not None and pace.left < wait_s:
            piece, more = await _next(receive, pace.left, _slow(limits))
        else:
            piece, more = await _next(receive, wait_s, DeadlineExceeded(LATE, code="slow_body"))
        size += len(piece)
        if size > limits.size:
            raise too_large(limits)
        if pace is not None:
            pace.came(len(piece), clock() - began)
            if more and pace.slow:
                raise _slow(limits)
        yield piece


def _slow(limits: BodyLimits) -> DeadlineExceeded:
    least = int(limits.rate * limits.window)
    return DeadlineExceeded(SLOW.format(least=least, window=limits.window), code="slow_body")


async def _next(receive: Receive, seconds: float, late: DeadlineExceeded) -> tuple[bytes, bool]:
    """The next piece, and whether there are more."""
    try:
        try:
            async with asyncio.timeout(seconds):
                message = await receive()
        except TimeoutError:
            async with asyncio.timeout(LAST_LOOK_S):
                message = await receive()
    except TimeoutError:
        raise late from None
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message.get("body", b""), message.get("more_body", False)


async def read_body(scope: Scope, receive: Receive, limits: BodyLimits, budget: ByteBudget, tenant: str) -> bytes:
    """The whole body. The budget counts its bytes as the tenant's: give them back.

    Raises:
        As `pieces`, and Unavailable if the budget is used up. Then nothing stays counted.
    """
    served: ServerRequest | None = scope.get(SERVED)
    if served is not None and (body := served.take_body()) is not None:
        if len(body) > limits.size:
            raise too_large(limits)
        budget.take(len(body), tenant)
        return body
    check_announced(scope, limits)
    parts: list[bytes] = []
    held, more = 0, True

    async def read(seconds: float) -> None:
        nonlocal held, more
        async with asyncio.timeout(seconds) as timeout:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                piece, more = message.get("body", b""), message.get("more_body", False)
                if held + len(piece) > limits.size:
                    raise too_large(limits)
                budget.take(len(piece), tenant)
                held += len(piece)
                parts.append(piece)
                if more:
                    timeout.reschedule((timeout.when() or 0.0) + len(piece) / limits.rate)

    try:
        try:
            await read(limits.grace)
        except TimeoutError:
            await read(LAST_LOOK_S)
    except BaseException as error:
        budget.give_back(held, tenant)
        if isinstance(error, TimeoutError):
            raise DeadlineExceeded(LATE, code="slow_body") from None
        raise
    return parts[0] if len(parts) == 1 else b"".join(parts)
