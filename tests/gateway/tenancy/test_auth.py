"""Who asks is told by the key alone, and a revocation is seen within seconds."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest

from pilotlight_core.model.api.call_api import KeyRequest
from pilotlight_core.model.errors import PilotlightError, Unauthenticated, Unavailable
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_gateway.tenancy.api_keys import ApiKey, create_key, new_key, revoke_key
from pilotlight_gateway.tenancy.auth import (
    LONGEST_AUTHORIZATION,
    TRUSTED_AT_MOST,
    TRUSTED_FOR,
    KeyAuthenticator,
)
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.gateway.world import WALL, World


def bearer(key: object) -> bytes:
    return f"Bearer {key}".encode()


async def test_a_valid_key_gives_its_tenant_and_scopes(world: World) -> None:
    """The principal is what the record says."""
    key = world.add_key("acme", "invoke", "read")

    principal = await world.services.authenticator.authenticate(bearer(key))

    assert (principal.tenant, principal.key_id) == ("acme", key.id)
    assert principal.scopes == frozenset({"invoke", "read"})


@pytest.mark.parametrize(
    "header",
    [b"", b"Bearer", b"Bearer ", b"Basic YWJj", b"Bearer pl_live_x", b"\xff\xfe", bearer(new_key())],
    ids=["absent", "scheme", "blank", "basic", "short", "binary", "unknown"],
)
async def test_what_is_no_known_key_is_refused(world: World, header: bytes) -> None:
    """Absent, malformed, mistyped and unknown credentials are all 401."""
    with pytest.raises(Unauthenticated) as caught:
        await world.services.authenticator.authenticate(header)

    assert caught.value.wire_code == "unauthenticated"


async def test_the_right_id_with_a_wrong_secret_is_refused(world: World) -> None:
    """Possession of the secret is what counts."""
    forged = ApiKey(world.key.id, new_key().secret)

    with pytest.raises(Unauthenticated):
        await world.services.authenticator.authenticate(bearer(forged))


async def test_an_expired_key_says_so(world: World) -> None:
    """Expiry has a code of its own, also for a key that is trusted at the moment."""
    key = world.add_key("acme", "invoke", expires_at=WALL + 1.0)
    await world.services.authenticator.authenticate(bearer(key))

    world.wall.at += 1.0
    world.clock.at += 1.0
    with pytest.raises(Unauthenticated) as caught:
        await world.services.authenticator.authenticate(bearer(key))

    assert caught.value.wire_code == "key_expired"


async def test_a_revocation_is_seen_at_once(world: World) -> None:
    """The mirror tells of it; a trusted key is looked at again."""
    key = world.add_key("acme", "invoke")
    await world.services.authenticator.authenticate(bearer(key))

    await revoke_key(world.registry, "acme", key.id, at=0.0, force=True)

    with pytest.raises(Unauthenticated):
        await world.services.authenticator.authenticate(bearer(key))


async def test_trust_ends_without_news_too(world: World) -> None:
    """After a second a key is looked at again: a registry that has lost contact is not trusted on."""
    key = world.add_key("acme", "invoke")
    await world.services.authenticator.authenticate(bearer(key))
    world.registry.stale = True

    await world.services.authenticator.authenticate(bearer(key))  # trusted still
    world.clock.at += TRUSTED_FOR
    with pytest.raises(Unavailable):
        await world.services.authenticator.authenticate(bearer(key))


class NewsBetween(MemoryRegistry):
    """A registry whose keys are all revoked between the look at the key and the one at its tenant."""

    def tenant_nowait(self, name: str) -> TenantRecord | None:
        for record in self.keys():
            self.key_records[record.id] = msgspec.structs.replace(record, revoked=True)
            for callback in self.on_change:
                callback(f"key.{record.id}", None)
        return super().tenant_nowait(name)


async def test_a_revocation_while_a_key_is_looked_at_is_not_missed() -> None:
    """What was read before the news is not trusted after it."""
    registry = NewsBetween()
    await registry.put_tenant(TenantRecord(name="acme", created_at=0.0))
    made = await create_key(registry, "acme", KeyRequest(), at=WALL)
    authenticator = KeyAuthenticator(registry, clock=lambda: 0.0, wall=lambda: WALL)

    await authenticator.authenticate(bearer(made.key))
    with pytest.raises(Unauthenticated):
        await authenticator.authenticate(bearer(made.key))


async def test_a_disabled_tenant_has_no_valid_keys(world: World) -> None:
    """Disabling a tenant disables its keys."""
    world.registry.tenant_records["acme"] = TenantRecord(name="acme", created_at=0.0, disabled=True)

    with pytest.raises(Unauthenticated):
        await world.services.authenticator.authenticate(bearer(world.key))


async def test_a_registry_without_contact_fails_closed(world: World) -> None:
    """A mirror that may have missed a revocation vouches for nobody."""
    world.registry.stale = True

    with pytest.raises(Unavailable) as caught:
        await world.services.authenticator.authenticate(bearer(world.key))

    assert caught.value.wire_code == "starting"


async def test_trust_is_bounded(world: World) -> None:
    """Ever new valid headers push out the oldest instead of growing the memory."""
    authenticator = world.services.authenticator
    spellings = ["".join(letters) for letters in product(*zip("bearer", "BEARER", strict=True))]
    headers = [f"{kind} {world.key}{' ' * pad}".encode() for kind in spellings for pad in range(66)]
    assert len(headers) > TRUSTED_AT_MOST
    for header in headers:
        await authenticator.authenticate(header)

    assert len(authenticator._trusted) == TRUSTED_AT_MOST  # type: ignore[attr-defined]


def test_a_missing_scope_is_named(world: World) -> None:
    """403 says what is missing; admin has every scope."""
    from pilotlight_gateway.tenancy.auth import Principal

    reader = Principal(tenant="acme", key_id="k", scopes=frozenset({"read"}))
    with pytest.raises(PilotlightError, match="invoke or deploy"):
        reader.require("invoke", "deploy")
    Principal(tenant="acme", key_id="k", scopes=frozenset({"admin"})).require("deploy")


async def test_a_padded_header_is_refused_before_it_is_kept(world: World) -> None:
    """A valid key in a header longer than any key needs would fill the memory with padding."""
    authenticator = world.services.authenticator
    header = bearer(world.key).ljust(LONGEST_AUTHORIZATION)
    await authenticator.authenticate(header)

    with pytest.raises(Unauthenticated, match="longer than 128 bytes"):
        await authenticator.authenticate(header + b" ")

    assert list(authenticator._trusted) == [header]  # type: ignore[attr-defined]
