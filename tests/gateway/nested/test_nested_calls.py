"""How one nested call is carried out: for whom, of which function, and until when."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import (
    BadInput,
    BudgetExhausted,
    Forbidden,
    FunctionRaised,
    NestedRefused,
    PilotlightError,
    TooMuch,
    Unauthenticated,
    UnknownFunction,
)
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.messages.agent_questions import AskNested
from pilotlight_core.model.tenancy import FunctionShareRecord, LimitsRecord
from pilotlight_core.model.tracing.trace_context import context_within
from pilotlight_gateway.nested.nested_book import OpenNested, key_of
from pilotlight_gateway.nested.nested_rules import Lineage
from pilotlight_gateway.tenancy.auth import Principal, TokenOrigin
from tests.builders.calls import prepared_call
from tests.builders.specs import function_spec, version_record
from tests.gateway.nested.nested_world import NestedWorld, asked
from tests.gateway.world import WALL, World, function


@pytest.fixture
def nested(world: World) -> NestedWorld:
    """A tenant's function `shop.hello`."""
    world.deploy(function())
    return NestedWorld(world)


def parent(nested: NestedWorld, *, owner: str = "acme", app: str = "shop", **more: Any) -> Any:
    """A call with the tenant's key, of a function of `owner`."""
    version = version_record(function_spec("outer", timeout=30.0), tenant=owner, app=app)
    at = time.monotonic()
    fields: dict[str, Any] = {
        "key": nested.world.key.id,
        "version": version,
        "arrived_at": at,
        "deadline_at": at + 60.0,
    } | more
    return prepared_call("p", **fields)


async def run(nested: NestedWorld, ask: AskNested, caller: Any, *above: str) -> Any:
    """The output of the nested call."""
    one = OpenNested(key_of(ask), "n1", Lineage("p", (*above, caller.function)), "r")
    body = await nested.calls.run(one, ask, caller, "req_1")
    return msgspec.msgpack.decode(body)["output"]


async def test_it_is_an_ordinary_call_of_the_parents_tenant(nested: NestedWorld) -> None:
    """With its key, and with the parent's id for the receipt."""
    assert await run(nested, asked(), parent(nested)) == {"name": "Ada"}

    (call,) = nested.world.calls.seen
    assert (call.tenant, call.key, call.parent) == ("acme", nested.world.key.id, "p")


async def test_its_deadline_is_never_later_than_the_parents(nested: NestedWorld) -> None:
    """Nor than the end of the parent's function; an earlier one may be asked for."""
    soon, late = parent(nested), parent(nested)
    soon.deadline_at = time.monotonic() + 5.0
    ask = asked(request=msgspec.msgpack.encode({"input": {"name": "Ada"}, "deadline_ms": 2_000.0}))
    await run(nested, asked(), soon)
    await run(nested, asked(), late)
    await run(nested, ask, soon)
    of_parent, of_timeout, own = nested.world.calls.seen

    assert of_parent.deadline_at == soon.deadline_at
    assert 25.0 < of_timeout.deadline_at - time.monotonic() <= 30.0
    assert own.deadline_at < soon.deadline_at - 2.0


async def test_it_is_below_the_span_of_what_made_it_with_what_vendors_know(nested: NestedWorld) -> None:
    came = f"00-{'a' * 32}-{'b' * 16}-01 congo=1"
    one = parent(nested, traceparent=came)
    await run(nested, asked(), one)
    assert nested.world.calls.seen[-1].traceparent == context_within(one.call_id, came).text
    assert nested.world.calls.seen[-1].traceparent.endswith("-01 congo=1")


async def test_the_input_passes_the_functions_schema(nested: NestedWorld) -> None:
    """As from outside."""
    with pytest.raises(PilotlightError, match="name"):
        await run(nested, asked(input={"name": 3}), parent(nested))
    later = msgspec.msgpack.encode({"input": {"name": "Ada"}, "run_at": 5.0})
    with pytest.raises(PilotlightError, match="run_at"):
        await run(nested, asked(request=later), parent(nested))


async def test_scopes_are_those_of_the_parents_key_now(nested: NestedWorld) -> None:
    """One that may no more, or never could, calls nothing; without a key, calls alone."""
    registry, key = nested.world.registry, nested.world.key.id
    assert nested.calls.principal_of(parent(nested, key="")).scopes == {"invoke"}
    registry.key_records[key] = msgspec.structs.replace(registry.key_records[key], scopes=("read",))
    with pytest.raises(Forbidden):
        await run(nested, asked(), parent(nested))
    registry.key_records[key] = msgspec.structs.replace(registry.key_records[key], revoked=True)
    with pytest.raises(Unauthenticated):
        await run(nested, asked(), parent(nested))
    registry.key_records[key] = msgspec.structs.replace(
        registry.key_records[key], revoked=False, scopes=("admin",), expires_at=WALL - 1
    )
    with pytest.raises(Unauthenticated, match="expired"):
        await run(nested, asked(), parent(nested))


async def test_who_has_shown_a_token_is_who_calls(nested: NestedWorld) -> None:
    """While its caller waits, with what it said; of a job no more is on record than that it was one."""
    origin = TokenOrigin(issuer="corp", url="https://corp", subject="ada", ends_at=WALL + 60.0, changed_at=WALL)
    holder = Principal(tenant="acme", key_id="oidc-corp-ada", scopes=frozenset({"invoke"}), origin=origin)
    ended: list[Principal] = []
    calls = replace(nested.calls, why_ended=lambda who: Unauthenticated("over") if who in ended else None)

    assert calls.principal_of(parent(nested, key=holder.key_id, principal=holder)) == holder
    job = calls.principal_of(parent(nested, key=holder.key_id))
    assert (job.tenant, job.key_id, job.scopes) == ("acme", holder.key_id, frozenset({"invoke"}))
    ended.append(holder)
    with pytest.raises(Unauthenticated, match="over"):
        calls.principal_of(parent(nested, key=holder.key_id, principal=holder))


async def test_a_circle_is_refused_before_it_counts(nested: NestedWorld) -> None:
    """Nothing is run, and nothing taken of a limit."""
    with pytest.raises(NestedRefused, match=r"circle: acme:shop\.hello > acme:shop\.outer > acme:shop\.hello"):
        await run(nested, asked(), parent(nested), "acme:shop.hello")
    assert nested.world.calls.seen == []


async def test_a_shadow_asks_for_nothing(nested: NestedWorld) -> None:
    """It repeats a call: what that has asked for would be done twice, and paid for."""
    with pytest.raises(NestedRefused, match="shadow"):
        await run(nested, asked(), parent(nested, shadow=True))
    assert nested.world.calls.seen == []


async def test_refusals_count_as_requests_of_their_tenant(nested: NestedWorld) -> None:
    """Circles, and functions that are none, as the API counts them; what passes counts under the limits of calls."""
    record = LimitsRecord(tenant="acme", limits=Limits(api_requests_per_s=0.2))
    nested.world.registry.limit_records["acme"] = record
    await run(nested, asked(), parent(nested))
    with pytest.raises(NestedRefused):
        await run(nested, asked(), parent(nested), "acme:shop.hello")
    with pytest.raises(UnknownFunction):
        await run(nested, asked(2, "shop.none"), parent(nested))
    with pytest.raises(TooMuch, match="requests to the API a second"):
        await run(nested, asked(3), parent(nested), "acme:shop.hello")
    await run(nested, asked(4), parent(nested))


async def test_names_of_none_do_not_flood_the_bus(nested: NestedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a rate nobody is asked; what is in memory is found all the same."""
    registry = nested.world.registry
    registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(api_requests_per_s=0.2))
    looked: list[str] = []
    read = registry.app

    async def app(tenant: str, name: str) -> Any:
        looked.append(name)
        return await read(tenant, name)

    monkeypatch.setattr(registry, "app", app)
    for number in range(50):
        with pytest.raises((UnknownFunction, TooMuch)):
            await run(nested, asked(number, f"none{number}.none"), parent(nested))
    assert len(looked) < 5
    await run(nested, asked(99), parent(nested))


async def test_a_function_of_the_own_app_is_found_whatever_the_app_is_called(nested: NestedWorld) -> None:
    """A run has another name than its source; what it does not have is the deployed one."""
    nested.world.deploy(function(), app="shop-run-1")
    caller = parent(nested, app="shop-run-1")

    found = await nested.calls.find_version(asked(of_app=True), caller)
    assert found.app == "shop-run-1"
    assert (await nested.calls.find_version(asked(), caller)).app == "shop"
    del nested.world.registry.apps["acme", "shop-run-1"]
    assert (await nested.calls.find_version(asked(of_app=True), caller)).app == "shop"


async def test_names_are_the_owners_and_must_be_open_to_who_pays(nested: NestedWorld) -> None:
    """A shared function calls for another tenant what that may call too, and none of its own functions."""
    nested.world.add_key("guest", "invoke")
    nested.world.deploy(function(), tenant="guest", app="private")
    caller = parent(nested, tenant="guest", key="")

    with pytest.raises(NestedRefused, match=r"sharing: acme:shop\.outer runs for a tenant"):
        await run(nested, asked(), caller)
    with pytest.raises(UnknownFunction):
        await run(nested, asked(function="guest:private.hello"), caller)
    share = FunctionShareRecord(tenant="acme", app="shop", grants={"guest": ("hello",)})
    nested.world.registry.share_records["acme", "shop"] = share
    assert await run(nested, asked(), caller) == {"name": "Ada"}
    assert nested.world.calls.seen[-1].tenant == "guest"


async def test_a_function_sees_no_more_of_another_tenants_function_than_its_owner_would(nested: NestedWorld) -> None:
    """Though who pays may see all: a traceback goes to the function that asks, not to who pays."""
    nested.world.add_key("guest", "invoke")
    nested.world.deploy(function(), tenant="guest", app="private")
    share = FunctionShareRecord(tenant="guest", app="private", grants={"acme": ("hello",)})
    nested.world.registry.share_records["guest", "private"] = share
    nested.world.calls.error = FunctionRaised("ValueError: hush", traceback="File hush.py", type="ValueError")

    with pytest.raises(FunctionRaised) as told:
        await run(nested, asked(function="guest:private.hello"), parent(nested, tenant="guest", key=""))

    assert "hush" not in f"{told.value} {told.value.more}"


async def test_a_shared_function_hears_no_limit_of_who_pays(nested: NestedWorld) -> None:
    """A code and its title: neither figures nor keys; nor may it name that tenant's calls."""
    nested.world.add_key("guest", "invoke")
    share = FunctionShareRecord(tenant="acme", app="shop", grants={"guest": ("hello",)})
    nested.world.registry.share_records["acme", "shop"] = share
    nested.world.calls.error = BudgetExhausted("hush: 4711 of 5000", retry_after=5.0, budget="hush")
    shared = parent(nested, tenant="guest", key="")

    with pytest.raises(BudgetExhausted) as told:
        await run(nested, asked(), shared)
    with pytest.raises(BudgetExhausted, match="hush"):
        await run(nested, asked(), parent(nested))
    named = msgspec.msgpack.encode({"input": {"name": "Ada"}, "id": "cid_order0017"})
    with pytest.raises(BadInput, match="no names"):
        await run(nested, asked(request=named), shared)

    assert (told.value.detail, told.value.more, told.value.retry_after) == ("A budget is used up", {}, None)


async def test_bytes_are_given_back(nested: NestedWorld) -> None:
    """Also when it fails."""
    nested.world.calls.error = PilotlightError("no", code="no_capacity")
    with pytest.raises(PilotlightError, match="no"):
        await run(nested, asked(), parent(nested))

    assert nested.world.services.budget.used == 0
