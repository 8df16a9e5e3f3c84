"""What ends within a second of a revocation, an expiry or the end of a tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from pilotlight_gateway import principal_watch
from pilotlight_gateway.principal_watch import PrincipalWatch
from pilotlight_gateway.tenancy.auth import KeyAuthenticator, Principal
from tests.gateway.http.asgi import Wire, ask
from tests.gateway.world import WALL, World, function
from tests.waiting import until


class Calls:
    """Calls of `acme` and `rival`, by the tenant."""

    def __init__(self) -> None:
        self.alive = {"acme", "rival"}

    def end_calls_of(self, is_over: Callable[[str], bool], reason: str) -> int:
        assert reason
        over = {tenant for tenant in self.alive if is_over(tenant)}
        self.alive -= over
        return len(over)


@pytest.fixture
def watch(world: World) -> PrincipalWatch:
    authenticator = KeyAuthenticator(world.registry, wall=lambda: WALL)
    return PrincipalWatch(world.services.requests, Calls(), authenticator, world.registry)


@pytest.mark.parametrize(
    ("change", "code"),
    [({"revoked": True}, "unauthenticated"), ({"expires_at": WALL}, "key_expired"), (None, "unauthenticated"),
     ({"expires_at": WALL + 1.0}, ""), ({}, "")],
)  # fmt: skip
async def test_a_principal_ends_with_its_key(world: World, change: dict[str, object] | None, code: str) -> None:
    """Revoked, expired or gone."""
    key = world.add_key("acme", "invoke")
    principal = Principal(tenant="acme", key_id=key.id, scopes=frozenset({"invoke"}))
    if change is None:
        del world.registry.key_records[key.id]
    else:
        world.registry.key_records[key.id] = msgspec.structs.replace(world.registry.key_records[key.id], **change)

    error = KeyAuthenticator(world.registry, wall=lambda: WALL).why_ended(principal)

    assert (error.wire_code if error is not None else "") == code


async def test_a_disabled_tenant_ends_with_all_that_it_has_begun(world: World, watch: PrincipalWatch) -> None:
    """Its requests, and its calls without one, such as those of jobs; another tenant's go on."""
    world.deploy(function())
    world.calls.hold = asyncio.Event()
    wire = Wire(pieces=[b'{"input": {"name": "x"}}'])
    authorization = f"Bearer {world.key}"
    call = asyncio.create_task(
        ask(world.app, wire, "POST", "/v1/functions/shop.hello/calls", authorization=authorization)
    )
    await until(lambda: world.calls.seen)
    assert watch.check() == 0

    records = world.registry.tenant_records
    records["acme"] = msgspec.structs.replace(records["acme"], disabled=True)

    assert watch.check() == 2
    assert ((await call).status, wire.json["detail"]) == (401, "The API key's tenant is disabled.")


async def test_it_is_checked_again_and_again(
    world: World, watch: PrincipalWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is cancelled."""
    monkeypatch.setattr(principal_watch, "CHECK_EVERY_S", 0.001)
    running = asyncio.create_task(watch.run())
    records = world.registry.tenant_records
    records["acme"] = msgspec.structs.replace(records["acme"], disabled=True)
    calls = watch._calls
    assert isinstance(calls, Calls)

    await until(lambda: calls.alive == {"rival"})

    running.cancel()
