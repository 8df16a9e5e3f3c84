"""A session opens what its key opens, for as long as both are good."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from pilotlight_core.model.errors import Forbidden, Unauthenticated
from pilotlight_core.model.records.issuers import IssuerRecord
from pilotlight_core.model.records.sessions import SessionRecord
from pilotlight_gateway.tenancy import login_sessions
from pilotlight_gateway.tenancy.api_keys import revoke_key
from pilotlight_gateway.tenancy.auth import LOOKUPS_AT_A_TIME, KeyAuthenticator, Principal, TokenOrigin
from pilotlight_gateway.tenancy.login_sessions import (
    CODE_S,
    IDLE_S,
    SEEN_EVERY_S,
    SESSION_S,
    SESSIONS_PER_KEY,
    end_session,
    exchange_code,
    id_of_token,
    open_session,
    session_info,
)
from tests.gateway.world import WALL, World


async def principal(world: World, token: object) -> Principal:
    return await world.services.authenticator.authenticate(f"Bearer {token}".encode())


def why_ended(world: World, who: Principal) -> bool:
    """Whether what was begun with it is to end."""
    authenticator = world.services.authenticator
    assert isinstance(authenticator, KeyAuthenticator)
    return authenticator.why_ended(who) is not None


async def opened(world: World, **more: bool) -> str:
    made = await open_session(world.registry, await principal(world, world.key), world.wall(), **more)
    return made.code or made.token


async def test_a_session_is_its_keys_tenant_and_scopes(world: World) -> None:
    """And the registry has neither its token nor the key's secret."""
    token = await opened(world)
    found = await principal(world, token)

    assert (found.tenant, found.key_id, found.scopes) == ("acme", world.key.id, frozenset({"admin"}))
    assert found.session == id_of_token(token)
    stored = msgspec.json.encode(world.registry.session_records)
    assert token.encode() not in stored
    assert world.key.secret.encode() not in stored


async def test_a_session_ends_with_its_key(world: World) -> None:
    """At once, also one that is trusted at the moment."""
    token = await opened(world)
    who = await principal(world, token)
    await revoke_key(world.registry, "acme", world.key.id, at=0.0, force=True)

    with pytest.raises(Unauthenticated):
        await principal(world, token)
    assert why_ended(world, who)


@pytest.mark.parametrize(("used", "passed_s"), [(True, SESSION_S), (False, IDLE_S + SEEN_EVERY_S)])
async def test_a_session_ends_after_eight_hours_or_half_an_hour_without_a_request(
    world: World, used: bool, passed_s: float
) -> None:
    """Whichever is first; use is noted each five minutes."""
    token, began = await opened(world), world.wall.at
    while used and world.wall.at < began + passed_s - 600.0:
        world.wall.at += 600.0
        world.clock.at += 600.0
        await principal(world, token)
    world.wall.at = world.clock.at = began + passed_s - 1.0
    if used:
        await principal(world, token)
    world.wall.at = world.clock.at = began + passed_s

    with pytest.raises(Unauthenticated):
        await principal(world, token)


async def test_use_is_written_down_each_five_minutes_and_no_more(world: World) -> None:
    """A request a second is no write a second."""
    token, writes = await opened(world), 0

    def count(key: str, _: object) -> None:
        nonlocal writes
        writes += key.startswith("session.")

    world.registry.on_change.append(count)
    for _ in range(20):
        world.wall.at += 30.0
        world.clock.at += 30.0
        await principal(world, token)
    assert writes == 2


async def test_who_logs_out_has_no_session(world: World) -> None:
    """A key is none, and ends otherwise."""
    token = await opened(world)
    who = await principal(world, token)
    assert session_info(world.registry, who).expires_at == WALL + SESSION_S
    await end_session(world.registry, who)

    assert why_ended(world, who)
    with pytest.raises(Unauthenticated):
        await principal(world, token)
    with pytest.raises(Forbidden):
        await end_session(world.registry, await principal(world, world.key))


async def test_a_session_is_of_a_plain_api_key_alone(world: World) -> None:
    """None of a session, which would outlive its eight hours; none of a key whose requests are written down."""
    who = await principal(world, await opened(world))
    with pytest.raises(Forbidden):
        await open_session(world.registry, who, world.wall())
    glass = world.add_key("platform", "operator", break_glass=True)
    with pytest.raises(Forbidden):
        await open_session(world.registry, await principal(world, glass), world.wall())
    holder = Principal(tenant="acme", key_id="oidc-corp-0", scopes=frozenset({"admin"}))
    with pytest.raises(Forbidden):
        await open_session(world.registry, holder, world.wall())


async def test_the_code_of_a_link_opens_one_session(world: World) -> None:
    """It opens nothing else, and nothing twice, and nothing once its time or its key has ended."""
    code = await opened(world, link=True)
    with pytest.raises(Unauthenticated):
        await principal(world, code)
    with pytest.raises(Unauthenticated):
        await principal(world, code.replace("pl_login_", "pl_session_"))
    made = await exchange_code(world.registry, code, world.wall())
    assert (await principal(world, made.token)).tenant == "acme"
    with pytest.raises(Unauthenticated):
        await exchange_code(world.registry, code, world.wall())
    with pytest.raises(Unauthenticated):
        await exchange_code(world.registry, made.token.replace("pl_session_", "pl_login_"), world.wall())
    assert (await principal(world, made.token)).tenant == "acme"

    late, orphan = await opened(world, link=True), await opened(world, link=True)
    with pytest.raises(Unauthenticated):
        await exchange_code(world.registry, late, world.wall() + CODE_S)
    await revoke_key(world.registry, "acme", world.key.id, at=0.0, force=True)
    with pytest.raises(Unauthenticated):
        await exchange_code(world.registry, orphan, world.wall())


async def test_a_key_has_so_many_sessions_and_ended_ones_are_forgotten(world: World) -> None:
    """The one that was used least lately makes room."""
    tokens = []
    for _ in range(SESSIONS_PER_KEY + 1):
        world.wall.at += 1.0
        tokens.append(await opened(world))
    assert len(world.registry.session_records) == SESSIONS_PER_KEY
    with pytest.raises(Unauthenticated):
        await principal(world, tokens[0])
    await principal(world, tokens[1])

    world.wall.at += SESSION_S
    await opened(world)
    assert len(world.registry.session_records) == 1


async def test_guesses_at_sessions_ask_the_registry_few_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As guesses at keys do: whoever has no key cannot make every gateway ask the bus as often as they please."""
    asking = most = 0

    async def session(_name: str) -> None:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        await asyncio.sleep(0)
        asking -= 1

    monkeypatch.setattr(world.registry, "session", session)
    guesses = [principal(world, f"pl_session_{number:043d}") for number in range(5 * LOOKUPS_AT_A_TIME)]
    found = await asyncio.gather(*guesses, return_exceptions=True)

    assert all(isinstance(each, Unauthenticated) for each in found)
    assert most == LOOKUPS_AT_A_TIME


async def test_sessions_that_come_and_go_take_no_other_trust_away(world: World) -> None:
    """A tenant that logs in all day makes nobody's calls look their key up again; a session that ends does at once."""
    authenticator = world.services.authenticator
    assert isinstance(authenticator, KeyAuthenticator)
    key = f"Bearer {world.key}".encode()
    token = await opened(world)
    who = await principal(world, token)
    await principal(world, world.key)
    await opened(world)

    assert authenticator.known(key) is not None
    assert authenticator.known(f"Bearer {token}".encode()) is not None
    await end_session(world.registry, who)
    assert authenticator.known(key) is not None
    assert authenticator.known(f"Bearer {token}".encode()) is None


def token_holder(world: World, ends_at: float) -> Principal:
    issuer = IssuerRecord(
        name="corp", url="https://issuer.example", audience="a", jwks_url="https://issuer.example/k", tenant="acme",
        changed_at=5.0,
    )  # fmt: skip
    world.registry.issuer_records["corp"] = issuer
    origin = TokenOrigin(issuer="corp", url=issuer.url, subject="ada", ends_at=ends_at, changed_at=5.0)
    return Principal(tenant="acme", key_id="oidc-corp-0123456789abcdef", scopes=frozenset({"read"}), origin=origin)


async def test_a_session_of_a_token_is_what_the_token_gave_until_its_end(world: World) -> None:
    """No key stands behind it; it ends with the token, though sessions of keys last longer."""
    made = await open_session(world.registry, token_holder(world, WALL + 600.0), world.wall())
    found = await principal(world, made.token)
    assert (found.tenant, found.key_id, found.scopes) == ("acme", "oidc-corp-0123456789abcdef", frozenset({"read"}))
    assert (found.session, made.expires_at) == (id_of_token(made.token), WALL + 600.0)
    assert not why_ended(world, found)
    world.wall.at += 601.0
    world.clock.at += 601.0
    assert why_ended(world, found)
    with pytest.raises(Unauthenticated):
        await principal(world, made.token)


async def test_a_session_of_a_token_ends_when_its_issuers_record_changes_or_goes(world: World) -> None:
    """What it would give now is asked anew, by logging in again."""
    made = await open_session(world.registry, token_holder(world, WALL + 600.0), world.wall())
    found = await principal(world, made.token)
    record = world.registry.issuer_records["corp"]
    for now in (msgspec.structs.replace(record, changed_at=9.0), None):
        world.registry.issuer_records.clear()
        if now is not None:
            world.registry.issuer_records["corp"] = now
        world.clock.at += 60.0
        assert why_ended(world, found)
        with pytest.raises(Unauthenticated):
            await principal(world, made.token)


async def test_a_token_makes_no_links_and_has_a_bounded_number_of_sessions(world: World) -> None:
    who = token_holder(world, WALL + 600.0)
    with pytest.raises(Forbidden):
        await open_session(world.registry, who, world.wall(), link=True)
    for _ in range(SESSIONS_PER_KEY + 3):
        await open_session(world.registry, who, world.wall())
    assert sum(one.key == who.key_id for one in world.registry.sessions()) == SESSIONS_PER_KEY


async def test_a_tenant_has_so_many_sessions_whatever_keys_it_makes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is of a revoked key goes with the next opening, and of the others the one that was used least lately."""
    monkeypatch.setattr(login_sessions, "SESSIONS_PER_TENANT", 3)
    who = await principal(world, world.key)
    first = await opened(world)
    gone = msgspec.structs.replace(world.registry.key_records[world.key.id], id="gone", revoked=True)
    world.registry.key_records["gone"] = gone
    for name, key in (("a", "gone"), ("b", "new"), ("c", "newer")):
        record = SessionRecord(
            id=name, tenant="acme", key=key, created_at=WALL, seen_at=WALL + 1, expires_at=WALL + SESSION_S
        )
        world.registry.session_records[name] = record
    await open_session(world.registry, who, world.wall())
    left = set(world.registry.session_records)
    assert "a" not in left
    assert id_of_token(first) not in left
    assert {"b", "c"} <= left
    assert len(left) == 3
