"""The caller of somebody else's function hears a code and an id, wherever it asks."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput, FunctionRaised, PilotlightError, UnknownCall, error_from_code
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_book import status_of
from pilotlight_gateway.calls.live_calls import AwaitedCall
from pilotlight_gateway.calls.origin import Origin
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller
from tests.gateway.world import World, function

RAISED = FunctionRaised("ValueError: hush", traceback="File hush.py", type="ValueError")


@pytest.fixture
def call(world: World) -> PreparedCall:
    """A call of the tenant `friend` to a function of `acme`."""
    return call_of("friend", world)


def call_of(tenant: str, world: World) -> PreparedCall:
    """A tenant's call to a function of `acme`."""
    (version,) = world.deploy(function())
    return PreparedCall(
        call_id="call_local_1_00000000000000000001", client_id=None, tenant=tenant, version=version,
        method=version.spec.methods[0], input=b"", priority=Priority.STANDARD, deadline_at=60.0,
        arrived_at=0.0, stream=False,
    )  # fmt: skip


def test_what_the_function_did_is_a_code_to_a_stranger(call: PreparedCall) -> None:
    """The class and the time to wait stay; detail, type and traceback go."""
    told = redact_for_caller(
        error_from_code("no_capacity", "hush", traceback="hush", retry_after=2.0, step="load"), call
    )

    assert (told.wire_code, told.retry_after) == ("no_capacity", 2.0)
    assert told.more == {"step": "load", "call": call.call_id}
    assert "hush" not in f"{told} {told.more}"
    assert isinstance(redact_for_caller(RAISED, call), FunctionRaised)


@pytest.mark.parametrize("error", [BadInput("x: wrong", field="x"), UnknownCall("gone"), PilotlightError("ours")])
def test_what_the_platform_says_is_for_everybody(call: PreparedCall, error: PilotlightError) -> None:
    """It is about the call, not about the code."""
    assert redact_for_caller(error, call) is error


def test_the_owner_hears_everything(world: World) -> None:
    """Its own call fails with what its function raised."""
    assert redact_for_caller(RAISED, call_of("acme", world)) is RAISED


@pytest.mark.parametrize(("tenant", "hears"), [("friend", False), ("acme", True)])
async def test_the_status_says_no_more_than_the_answer(world: World, tenant: str, hears: bool) -> None:
    """`GET /v1/calls/{id}` of a call that failed."""
    made = call_of(tenant, world)
    answer = asyncio.get_running_loop().create_future()
    live = AwaitedCall(made, 0, Origin(made, "gw1", 0.0), answer, ByteBudget(limit=1))

    live.fail(RAISED)

    status = msgspec.json.encode(status_of(live, 1.0)).decode()
    assert '"function_raised"' in status
    assert ("hush" in status) is hears
