"""Request bodies within bounds: of size, before anything is parsed; of time; and of memory over all requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from starlette.types import Receive, Scope

from pilotlight_core.model.errors import BadInput, DeadlineExceeded
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.http.protocol.http_exchange import SERVED, ClientGone, ServerRequest, header

LATE = "The request's body did not arrive in time."
SLOW = "The request's body came too slowly: of one like this at least {least} bytes have to come in {window:g} s."
LAST_LOOK_S = 0.25
"""For what is there already when the time is up: a process that stood still finds its timers before its mail."""


@dataclass(frozen=True, kw_only=True)
class BodyLimits:
    """What a body may be."""

    size: int
    grace: float = 5.0
    """Seconds before its pace counts."""
    rate: int = 64 * 1024
    """Bytes a second at which a body in memory has to arrive, so that a slow client does not hold it long."""
    window: float = 0.0
    """Seconds in which a streamed one may fall behind that rate; 0.0: its pace does not count."""
    seconds: float = 1_800.0
    """For all of a streamed one, whose pace is also that of the disk."""
    idle_seconds: float = 30.0
    """Between two pieces of a streamed one."""


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


class MinThroughput:
    """Whether a streamed body comes fast enough. Pure.

    It may be waited_s for as long as `window` says, and for longer as far as what came has earned it. Only waiting
    counts: not what is done with a piece before the next one is wanted.
    """

    def __init__(self, limits: BodyLimits) -> None:
        self._limits = limits
        self.left = limits.window
        """Seconds for which the next piece may be waited_s for."""

    def came(self, size: int, waited_s: float) -> None:
        """A piece of `size` bytes came after `waited` seconds."""
        self.left = min(self._limits.window, self.left - waited_s + size / self._limits.rate)

    @property
    def slow(self) -> bool:
        """Whether it is not to be waited_s for any more, beyond a last look."""
        return self.left < LAST_LOOK_S


async def pieces(
    scope: Scope, receive: Receive, limits: BodyLimits, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[bytes]:
    """The body as it arrives.

    Raises:
        BadInput: `too_large`, whatever Content-Length said.
        DeadlineExceeded: if it does not arrive in time; `slow_body`, if it falls behind its pace.
        ClientGone: if the client hangs up.
    """
    check_announced(scope, limits)
    pace = MinThroughput(limits) if limits.window else None
    size, ends, more = 0, clock() + limits.seconds, True
    while more:
        began = clock()
        patience = min(ends - began, limits.idle_seconds)
        if pace is not None and pace.left < patience:
            piece, more = await _next(receive, pace.left, _slow(limits))
        else:
            piece, more = await _next(receive, patience, DeadlineExceeded(LATE, code="slow_body"))
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
    """The next piece and whether there are more."""
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
    """The whole body. Its bytes count as the tenant's while it arrives and stay counted: give them back.

    Raises:
        As `pieces`, and Unavailable when the budget is used up: then nothing stays counted.
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
        async with asyncio.timeout(seconds) as patience:
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
                    patience.reschedule((patience.when() or 0.0) + len(piece) / limits.rate)

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
