"""Issuers on record: what an operator may say of them, and what others see."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from pilotlight_core.model.errors import BadInput, Conflict, NotFound, Unavailable
from pilotlight_core.model.records.issuers import ISSUERS_AT_MOST
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_gateway.oidc.issuer_book import issuer_info, login_infos, remove_issuer, set_issuer
from pilotlight_gateway.oidc.issuer_keys import KnownKeys
from pilotlight_gateway.oidc.jwks_source import WELL_KNOWN, MemoryJwksSource
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.gateway.oidc.token_maker import JWKS_URL, RECORD, REQUEST, URL
from tests.gateway.world import WALL

DOCUMENT = json.dumps({"issuer": URL, "jwks_uri": JWKS_URL}).encode()


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry(tenant_records={"acme": TenantRecord(name="acme", created_at=WALL)})


async def test_an_issuer_is_set_and_replaced(registry: MemoryRegistry) -> None:
    """Whole, with the instant; where its keys are is asked once, and then on record."""
    source = MemoryJwksSource(documents={URL + WELL_KNOWN: DOCUMENT})
    made = await set_issuer(registry, source, "corp", REQUEST, WALL)
    assert source.asked == []
    found = await set_issuer(registry, source, "corp", replace(REQUEST, jwks_url=""), WALL)
    assert found == made == registry.issuer_records["corp"]
    assert (made.jwks_url, made.changed_at, made.tenants) == (JWKS_URL, WALL, {"acme-corp": "acme"})
    later = await set_issuer(registry, source, "corp", replace(REQUEST, groups={}), WALL + 1)
    assert registry.issuer_records == {"corp": later}


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"url": "http://login.example.com"}, "url"),
        ({"url": "ftp://login.example.com"}, "url"),
        ({"url": f"{URL}?a=b"}, "url"),
        ({"jwks_url": "http://169.254.169.254/"}, "jwks_url"),
        ({"algorithms": ("HS256",)}, "algorithms"),
        ({"algorithms": ("RS256", "none")}, "algorithms"),
        ({"tenant": "acme"}, "tenant"),
        ({"tenant_claim": "", "tenants": {}}, "tenant"),
        ({"tenants": {}}, "tenants"),
        ({"tenants": {"acme-corp": "*"}}, "tenants"),
        ({"tenants": {"acme-corp": "ghost"}}, "tenant"),
    ],
)
async def test_what_cannot_be_on_record(registry: MemoryRegistry, changed: dict[str, object], field: str) -> None:
    """And then nobody is asked anything."""
    source = MemoryJwksSource()
    with pytest.raises(BadInput) as caught:
        await set_issuer(registry, source, "corp", replace(REQUEST, **{"jwks_url": ""} | changed), WALL)
    assert caught.value.more["field"] == field
    assert (source.asked, registry.issuer_records) == ([], {})


@pytest.mark.parametrize("name", ["", "Corp", "a.b", "-a", "a" * 33, "corp\n", "*", "a/b"])
async def test_a_name_is_one(registry: MemoryRegistry, name: str) -> None:
    with pytest.raises(BadInput):
        await set_issuer(registry, MemoryJwksSource(), name, REQUEST, WALL)
    with pytest.raises(BadInput):
        await remove_issuer(registry, name)


async def test_who_does_not_say_where_its_keys_are_is_not_on_record(registry: MemoryRegistry) -> None:
    """Unless the operator says it."""
    with pytest.raises(Unavailable, match="jwks_url") as caught:
        await set_issuer(registry, MemoryJwksSource(), "corp", replace(REQUEST, jwks_url=""), WALL)
    assert caught.value.wire_code == "issuer_unavailable"
    await set_issuer(registry, MemoryJwksSource(), "corp", REQUEST, WALL)


async def test_issuers_are_bounded(registry: MemoryRegistry) -> None:
    for number in range(ISSUERS_AT_MOST):
        await set_issuer(registry, MemoryJwksSource(), f"corp-{number}", replace(REQUEST, audience=f"a{number}"), WALL)
    with pytest.raises(Conflict):
        await set_issuer(registry, MemoryJwksSource(), "corp", REQUEST, WALL)
    await set_issuer(registry, MemoryJwksSource(), "corp-0", REQUEST, WALL)


async def test_a_tokens_record_is_one(registry: MemoryRegistry) -> None:
    """Of two records for one issuer and audience, the second one would change nothing."""
    await set_issuer(registry, MemoryJwksSource(), "corp", REQUEST, WALL)
    with pytest.raises(Conflict, match="corp is the record"):
        await set_issuer(registry, MemoryJwksSource(), "other", REQUEST, WALL)
    await set_issuer(registry, MemoryJwksSource(), "other", replace(REQUEST, audience="other"), WALL)
    await set_issuer(registry, MemoryJwksSource(), "corp", REQUEST, WALL + 1)


async def test_one_is_removed_once(registry: MemoryRegistry) -> None:
    registry.issuer_records["corp"] = RECORD
    await remove_issuer(registry, "corp")
    with pytest.raises(NotFound):
        await remove_issuer(registry, "corp")


def test_what_is_shown() -> None:
    """To operators all of it, and how it stands; to whoever logs in only what a client has to know."""
    info = issuer_info(RECORD, KnownKeys(url=JWKS_URL, problem="cut"), 100.0)
    assert (info.name, info.keys, info.keys_age_s, info.problem) == ("corp", 0, None, "cut")
    programs = replace(RECORD, name="ci", client_id="")
    ids = replace(RECORD, name="dex", audience="cli")
    shown = login_infos([ids, programs, RECORD])
    assert [(one.name, one.client_id, one.id_tokens) for one in shown] == [("corp", "cli", False), ("dex", "cli", True)]
