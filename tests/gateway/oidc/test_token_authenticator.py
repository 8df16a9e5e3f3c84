"""Whom a token is about, over a whole gateway's HTTP side; what of it costs what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.model.errors import PilotlightError, Unauthenticated
from pilotlight_core.model.records.issuers import IssuerRecord
from pilotlight_gateway.oidc.issuer_book import remove_issuer
from pilotlight_gateway.oidc.issuer_keys import FRESH_FOR_S, RETRY_S
from pilotlight_gateway.oidc.token_authenticator import GOES_ON_S, REMEMBERED_AT_MOST, REMEMBERED_S, TokenAuthenticator
from pilotlight_gateway.tenancy.auth import LONGEST_TRUSTED, KeyAuthenticator, Principal
from tests.gateway.oidc.token_maker import AUDIENCE, RECORD, TokenMaker, on_record
from tests.gateway.world import WALL, World
from tests.waiting import until

MAKER = TokenMaker()


@pytest.fixture
async def corp(world: World) -> AsyncIterator[World]:
    """A platform with the issuer on record."""
    on_record(world, MAKER)
    async with world.issuer_keys.running():
        yield world


async def asks(world: World, token: bytes, kind: bytes = b"Bearer ") -> Principal:
    return await world.services.authenticator.authenticate(kind + token)


async def refused(world: World, token: bytes) -> str:
    with pytest.raises(PilotlightError) as caught:
        await asks(world, token)
    return caught.value.wire_code


def put(world: World, record: IssuerRecord) -> None:
    world.registry.issuer_records[record.name] = record
    for tell in world.registry.on_change:
        tell(f"issuer.{record.name}", record)


async def test_a_good_token_is_somebody(corp: World) -> None:
    """The same one in each of theirs, and another one than anybody else."""
    ada = await asks(corp, MAKER.token())
    assert (ada.tenant, sorted(ada.scopes)) == ("acme", ["deploy", "invoke"])
    assert ada.origin is not None
    assert (ada.origin.issuer, ada.origin.subject, ada.origin.ends_at) == ("corp", "ada", WALL + 330)
    assert ada.key_id.startswith("oidc-corp-")
    assert (await asks(corp, MAKER.token(exp=WALL + 400), b"bearer ")).key_id == ada.key_id
    assert (await asks(corp, MAKER.token(sub="eve"))).key_id != ada.key_id


async def test_it_is_verified_once(corp: World) -> None:
    """And its keys are fetched once; the next second it is known by its bytes."""
    token = MAKER.token()
    first = await asks(corp, token)
    assert corp.services.authenticator.known(b"Bearer " + token) is first
    corp.clock.at += 2.0
    assert corp.services.authenticator.known(b"Bearer " + token) is None
    corp.jwks.silent = "gone"
    assert await asks(corp, token) == first
    assert len(corp.jwks.asked) == 1


async def test_what_is_remembered_ends(corp: World) -> None:
    """After some minutes it is verified again, by keys that may be others by then."""
    token = MAKER.token(exp=WALL + 10_000)
    await asks(corp, token)
    corp.jwks.documents[RECORD.jwks_url] = TokenMaker(name="key-1").jwks()
    corp.clock.at += FRESH_FOR_S
    await asks(corp, token)
    corp.issuer_keys.wake()
    await until(lambda: corp.issuer_keys.known(RECORD).fetched_at == corp.clock.at)
    corp.clock.at += REMEMBERED_S - 1
    await asks(corp, token)
    corp.clock.at += 1
    assert await refused(corp, token) == "token_invalid"


async def test_it_ends_when_it_says(corp: World) -> None:
    """However often it was good before."""
    token = MAKER.token()
    await asks(corp, token)
    corp.wall.at = WALL + 329.9
    corp.clock.at += 329.9
    await asks(corp, token)
    assert corp.services.authenticator.known(b"Bearer " + token) is not None
    corp.clock.at += 0.2
    corp.wall.at += 0.2
    assert corp.services.authenticator.known(b"Bearer " + token) is None
    assert await refused(corp, token) == "token_expired"


async def test_strangers_cost_nothing(corp: World) -> None:
    """Of issuers that are not on record, or tokens that are no good by what they say, nobody is asked anything."""
    url = "http://169.254.169.254/latest"
    for token in (
        MAKER.token(iss="https://evil.example.com"),
        MAKER.token(iss=url, header={"jku": url, "x5u": url}),
        MAKER.token(iss=RECORD.url + "/"),
        MAKER.token(iss=["https://login.example.com"]),
        MAKER.token(iss=None),
        MAKER.token(aud="other"),
        MAKER.token(aud=None),
        MAKER.token(header={"alg": "HS256"}),
        MAKER.token(header={"alg": "none"}),
        MAKER.token(header={"alg": "ES384"}),
        MAKER.token(header={"crit": ["b64"]}),
        MAKER.raw(b'{"alg":"ES256","alg":"none"}', b"{}"),
    ):
        assert await refused(corp, token) == "token_invalid"
    assert await refused(corp, MAKER.token(exp=WALL - 31)) == "token_expired"
    assert corp.jwks.asked == []


async def test_a_forged_one_finds_nothing_out(corp: World) -> None:
    """What groups and tenants are on record is told to nobody but who has a token of the issuer's."""
    evil = TokenMaker()
    for changed in ({}, {"groups": ["cooks"]}, {"org": "other"}, {"sub": None}):
        with pytest.raises(Unauthenticated, match="not signed by its issuer"):
            await asks(corp, evil.token(**changed))
    assert await refused(corp, MAKER.token(groups=["cooks"])) == "no_access"


async def test_strangers_are_not_read(corp: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is anybody, if no issuer is on record: what is costly comes behind what is cheap."""
    stranger, ada = MAKER.token(iss="https://evil.example.com"), MAKER.token()

    def reads(*_: Any, **__: Any) -> None:
        raise AssertionError("it is read")

    monkeypatch.setattr("json.loads", reads)
    assert await refused(corp, stranger) == "token_invalid"
    with pytest.raises(AssertionError):
        await asks(corp, ada)
    await remove_issuer(corp.registry, "corp")
    assert await refused(corp, ada) == "token_invalid"


async def test_only_its_issuers_keys_count(corp: World) -> None:
    """Neither another key under the same name, nor one that it brings along, nor one that is not shown."""
    evil = TokenMaker()
    assert await refused(corp, evil.token()) == "token_invalid"
    assert await refused(corp, evil.token(header={"jwk": evil.jwk()})) == "token_invalid"
    for name in ("key-9", "../../etc/passwd", "key-1' OR 1=1", "http://169.254.169.254/", "\u0000", ""):
        assert await refused(corp, MAKER.token(header={"kid": name})) == "token_invalid"
    unnamed = MAKER.token(header={"kid": None})
    assert (await asks(corp, unnamed)).tenant == "acme"
    assert corp.jwks.asked == [RECORD.jwks_url]


async def test_a_removed_issuer_is_nobody_at_once(corp: World) -> None:
    """Also what it had begun ends; and so it does when its record gives less than it did."""
    token = MAKER.token()
    ada = await asks(corp, token)
    authenticator = corp.services.authenticator
    assert isinstance(authenticator, KeyAuthenticator)
    assert authenticator.why_ended(ada) is None
    put(corp, replace(RECORD, changed_at=WALL, groups={"engineers": ("invoke", "deploy", "read")}))
    assert authenticator.why_ended(ada) is None
    put(corp, replace(RECORD, changed_at=WALL + 1, groups={"engineers": ("invoke",)}))
    ended = authenticator.why_ended(ada)
    assert ended is not None
    assert "gave more" in ended.detail
    assert (await asks(corp, token)).scopes == {"invoke"}
    await remove_issuer(corp.registry, "corp")
    assert authenticator.known(b"Bearer " + token) is None
    assert authenticator.why_ended(ada) is not None
    assert await refused(corp, token) == "token_invalid"


async def test_what_was_begun_may_end(corp: World) -> None:
    """A call takes longer than tokens live: it goes on for an hour, and no longer."""
    ada = await asks(corp, MAKER.token())
    authenticator = corp.services.authenticator
    assert isinstance(authenticator, KeyAuthenticator)
    corp.wall.at = WALL + 330 + GOES_ON_S - 1
    assert authenticator.why_ended(ada) is None
    corp.wall.at += 1
    ended = authenticator.why_ended(ada)
    assert ended is not None
    assert ended.wire_code == "token_expired"


async def test_a_tenant_ends_its_tokens(corp: World) -> None:
    """Disabled, or not there at all."""
    token, authenticator = MAKER.token(), corp.services.authenticator
    ada = await asks(corp, token)
    assert isinstance(authenticator, KeyAuthenticator)
    await corp.registry.change_tenant("acme", lambda present: replace(_there(present), disabled=True))
    assert authenticator.why_ended(ada) is not None
    assert await refused(corp, token) == "unauthenticated"
    put(corp, replace(RECORD, tenants={"acme-corp": "ghost"}))
    assert await refused(corp, token) == "no_access"


async def test_two_records_of_one_issuer(corp: World) -> None:
    """Told apart by whom their tokens are for."""
    put(corp, replace(RECORD, name="lab", audience="lab", groups={"*": ("read",)}))
    assert (await asks(corp, MAKER.token())).scopes == {"invoke", "deploy"}
    lab = await asks(corp, MAKER.token(aud="lab"))
    assert lab.scopes == {"read"}
    assert lab.key_id.startswith("oidc-lab-")


async def test_without_keys_there_is_a_reason(corp: World) -> None:
    """503, as it is no fault of the token; API keys go on."""
    corp.jwks.silent = "the line is cut"
    assert await refused(corp, MAKER.token()) == "issuer_unavailable"
    assert (await asks(corp, str(corp.key).encode())).tenant == "acme"
    corp.jwks.silent = ""
    corp.clock.at += RETRY_S
    assert (await asks(corp, MAKER.token())).tenant == "acme"


async def test_what_is_remembered_is_bounded(corp: World) -> None:
    """By number, and large ones are not known by their bytes."""
    tokens = corp.services.authenticator
    assert isinstance(tokens, KeyAuthenticator)
    large = MAKER.token(groups=["engineers", *(f"group-{number:04}" for number in range(500))])
    assert len(large) > LONGEST_TRUSTED
    assert (await asks(corp, large)).tenant == "acme"
    assert tokens.known(b"Bearer " + large) is None
    inner: Any = TokenAuthenticator(corp.registry, corp.issuer_keys, clock=corp.clock, wall=corp.wall)
    for number in range(REMEMBERED_AT_MOST + 10):
        inner._remember(number.to_bytes(32), None)
    assert len(inner._remembered) == REMEMBERED_AT_MOST


@pytest.mark.parametrize("header", [b"Basic ", b"", b"Bearer x", b"certificate "])
async def test_a_token_is_a_bearers(corp: World, header: bytes) -> None:
    with pytest.raises(Unauthenticated):
        await asks(corp, MAKER.token(), header)


async def test_without_a_registry_nobody_is_known(corp: World) -> None:
    """As with keys: it may have missed that an issuer was removed."""
    corp.registry.stale = True
    assert await refused(corp, MAKER.token()) == "starting"
    assert RECORD.audience == AUDIENCE


def _there(present: Any) -> Any:
    assert present is not None
    return present
