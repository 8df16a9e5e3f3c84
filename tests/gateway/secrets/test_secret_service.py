"""Secrets are set, listed and removed; no answer has a value."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput, Conflict, NotFound, QuotaExceeded, Unavailable
from pilotlight_core.model.spec import AppRecord
from pilotlight_gateway.secrets.secret_service import (
    MOST_OF_TENANT,
    check_secrets_set,
    functions_using,
    list_secrets,
    remove_secret,
)
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.specs import function_spec, version_record
from tests.gateway.secrets.makers import AT, VALUE, Vaulted, secret


@pytest.fixture
def kept() -> Vaulted:
    return Vaulted()


def registry_of(**more: object) -> MemoryRegistry:
    """`acme:shop.hello` uses `token`, `acme:shop.bare` uses none; `more` is of the app."""
    registry = MemoryRegistry()
    for name, options in (("hello", {"secrets": {"TOKEN": "token"}}), ("bare", {})):
        version = version_record(function_spec(name, **options), id=f"ver_{name}", tenant="acme", app="shop")
        registry.versions[version.id] = version
    functions = {"hello": "ver_hello", "bare": "ver_bare", "gone": "ver_gone"}
    registry.apps["acme", "shop"] = AppRecord(tenant="acme", app="shop", revision=1, functions=functions, **more)  # type: ignore[arg-type]
    return registry


async def test_a_secret_that_is_set_again_counts_up(kept: Vaulted) -> None:
    """It stays the one that was made first."""
    first = await kept.set()
    second = await kept.set(value="another value of it")

    assert (first.number, second.number) == (1, 2)
    assert second.created_at == first.created_at
    assert await kept.values("token") == {"token": "another value of it"}


@pytest.mark.parametrize(("name", "value", "field"), [("no.name", VALUE, "name"), ("token", "tooless", "value")])
async def test_what_is_none_is_refused(kept: Vaulted, name: str, value: str, field: str) -> None:
    """By the field's name, before a key is made."""
    with pytest.raises(BadInput) as caught:
        await kept.set(name, value)

    assert caught.value.more["field"] == field
    assert value not in caught.value.detail
    assert kept.store.keys == {}


async def test_a_tenant_has_so_many_and_no_more(kept: Vaulted) -> None:
    """It may change those that it has."""
    for number in range(MOST_OF_TENANT):
        kept.store.records["acme", f"s{number}"] = secret(f"s{number}")
    with pytest.raises(QuotaExceeded):
        await kept.set("one-more")
    assert (await kept.set("s1")).number == 2
    assert (await kept.set("one-more", tenant="rival")).number == 1


async def test_two_that_are_set_at_once_are_not_one_too_many(kept: Vaulted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each saw room for one more; nothing of what is refused stays, and what is set again meanwhile does."""
    store = kept.store
    for number in range(MOST_OF_TENANT):
        store.records["acme", f"s{number}"] = secret(f"s{number}")
    monkeypatch.setattr(store, "secrets", lambda _: [])  # as it was a moment ago
    with pytest.raises(QuotaExceeded):
        await kept.set("one-more")

    assert len(store.records) == MOST_OF_TENANT
    assert ("acme", "one-more") not in store.records
    del store.records["acme", "s0"]
    assert (await kept.set("one-more")).number == 1


async def test_without_the_platforms_key_nothing_is_set(kept: Vaulted, capsys: pytest.CaptureFixture[str]) -> None:
    """The caller hears whether to try again, and operators why."""
    kept.platform.refused = True
    with pytest.raises(Unavailable, match="gateway's log says why") as refused:
        await kept.set()
    kept.platform.refused, kept.platform.down = False, True
    with pytest.raises(Unavailable) as down:
        await kept.set()

    said = capsys.readouterr().out
    assert "the key may not be used" in said
    assert "the key does not answer" in said
    assert (refused.value.wire_code, down.value.wire_code, down.value.retry_after) == ("misconfigured",) * 2 + (5.0,)
    assert kept.store.records == {}


async def test_a_list_has_names_numbers_and_who_uses_them(kept: Vaulted) -> None:
    """And no value, sealed or not."""
    await kept.set("token")
    await kept.set("other")
    listed = list_secrets(kept.store, registry_of(), "acme", AT)

    assert [(one.name, one.number, one.changed_by, one.functions) for one in listed] == [
        ("other", 1, "k1", []),
        ("token", 1, "k1", ["shop.hello"]),
    ]
    assert b"sealed" not in msgspec.json.encode(listed)
    assert list_secrets(kept.store, registry_of(), "rival", AT) == []


async def test_a_secret_in_use_stays(kept: Vaulted) -> None:
    """Its users are named; once they are out of service it goes."""
    await kept.set("token")
    with pytest.raises(Conflict, match=r"token is used by shop\.hello: deploy without it, or stop the app"):
        await remove_secret(kept.store, registry_of(), "acme", "token", AT)

    await remove_secret(kept.store, registry_of(stopped=True), "acme", "token", AT)
    assert kept.store.records == {}
    with pytest.raises(NotFound):
        await remove_secret(kept.store, registry_of(stopped=True), "acme", "token", AT)


def test_what_is_out_of_service_uses_nothing() -> None:
    """A stopped app, and a run whose time is over."""
    assert list(functions_using(registry_of(), "acme", "token", AT)) == ["shop.hello"]
    assert list(functions_using(registry_of(stopped=True), "acme", "token", AT)) == []
    assert list(functions_using(registry_of(ends_at=AT - 1), "acme", "token", AT)) == []
    assert list(functions_using(registry_of(), "rival", "token", AT)) == []


async def test_a_deploy_that_names_a_secret_of_nobody_is_refused(kept: Vaulted) -> None:
    """By its name, with what to do; another tenant's is nobody's."""
    await kept.set("token")
    uses = function_spec("hello", secrets={"A": "token", "B": "key-a", "C": "key-b"})
    await check_secrets_set(kept.store, "acme", [function_spec(), function_spec(secrets={"A": "token"})])

    with pytest.raises(BadInput, match="hello: there is no secret key-a, key-b: run `pilotlight secret set key-a`,"):
        await check_secrets_set(kept.store, "acme", [uses])
    with pytest.raises(BadInput, match="there is no secret token"):
        await check_secrets_set(kept.store, "rival", [function_spec(secrets={"A": "token"})])
