"""One request over gRPC."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import grpc
import pytest

from pilotlight_core.model.errors import BadInput, PilotlightError, Unauthenticated, Unavailable
from pilotlight_gateway.grpc_front.grpc_requests import (
    GrpcRequest,
    error_text,
    principal_of,
    report_errors,
    seconds_left,
)
from pilotlight_gateway.tenancy.auth import NOBODY
from tests.gateway.world import World


class FakeContext:
    """What a handler sees of a request, and what it is told."""

    def __init__(self, *metadata: tuple[str, Any], remaining: float | None = None) -> None:
        self.metadata = metadata
        self.remaining = remaining
        self.told: Any = None

    def invocation_metadata(self) -> tuple[tuple[str, Any], ...]:
        return self.metadata

    def time_remaining(self) -> float | None:
        return self.remaining

    async def abort(self, *told: Any) -> None:
        self.told = told
        raise grpc.aio.AbortError


async def test_the_key_is_in_the_metadata(world: World) -> None:
    """As text or bytes; none, several and others are refused."""
    authenticator = world.services.authenticator
    for key in (f"Bearer {world.key}", f"Bearer {world.key}".encode()):
        assert (await principal_of(FakeContext(("authorization", key)), authenticator)).tenant == "acme"
    for metadata, error in (
        ((), Unauthenticated),
        ((("authorization", "Bearer ü€"),), Unauthenticated),
        ((("authorization", "a"), ("authorization", "b")), BadInput),
    ):
        with pytest.raises(error):
            await principal_of(FakeContext(*metadata), authenticator)


async def test_errors_are_told_once() -> None:
    """With their code and when to come again; a mistake of ours says nothing of itself."""
    for error, status, text in (
        (Unavailable("Full.", retry_after=1.5), grpc.StatusCode.UNAVAILABLE, "Full."),
        (ZeroDivisionError("secret"), grpc.StatusCode.INTERNAL, "The platform made a mistake"),
    ):
        context = FakeContext()
        with pytest.raises(grpc.aio.AbortError):
            async with report_errors(context, lambda: "req_1"):
                raise error
        found, said, trailers = context.told
        assert (found, said) == (status, text)
        assert dict(trailers)["x-request-id"] == "req_1"
    assert error_text(PilotlightError("a\nb" * 1000)).startswith("a ba b")
    assert len(error_text(PilotlightError("x" * 5000))) == 1001


async def test_a_request_ends_with_its_key() -> None:
    """The cancellation is its error then; another one is not."""
    begun = asyncio.Event()

    async def work() -> str:
        request = GrpcRequest(NOBODY, 0.0)
        begun.set()
        requests.append(request)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if (why := request.was_revoked()) is None:
                raise
            return why.detail
        return ""

    requests: list[GrpcRequest] = []
    working = asyncio.ensure_future(work())
    await begun.wait()
    requests[0].revoke(Unauthenticated("It was revoked."))
    assert await working == "It was revoked."


def test_a_client_may_wait_for_ever() -> None:
    """Then there is no deadline of its own."""
    assert seconds_left(FakeContext()) is None
    assert seconds_left(FakeContext(remaining=math.inf)) is None
    assert seconds_left(FakeContext(remaining=1.5)) == 1.5
