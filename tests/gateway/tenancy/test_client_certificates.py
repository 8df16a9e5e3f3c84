"""A client's certificate in place of a key: only a holder that the operator has mapped is anybody."""

from __future__ import annotations

import time

import msgspec
import pytest

from pilotlight_core.host.certificates.authority import CLOCK_SLACK
from pilotlight_core.model.api.call_api import KeyRequest
from pilotlight_core.model.api.tenancy_api import RotateRequest
from pilotlight_core.model.errors import Conflict, Forbidden, Unauthenticated
from pilotlight_gateway.tenancy.api_keys import DEAD_KEYS_KEPT, create_key, list_keys, revoke_key, rotate_key
from pilotlight_gateway.tenancy.client_certificates import ISSUE_SLACK_S, ClientCertificate, certificate_of, holder_of
from tests.gateway.world import WALL, World

ENDS = "Nov 26 12:00:00 2027 GMT"
REPORTS = KeyRequest(scopes=("read",), certificate="reports")


def shown(*names: str, issued_at: float = WALL) -> ClientCertificate:
    subject = tuple((("commonName", name),) for name in names)
    begins = time.strftime("%b %d %H:%M:%S %Y GMT", time.gmtime(issued_at - ISSUE_SLACK_S))
    found = certificate_of({"subject": subject, "notBefore": begins, "notAfter": ENDS})
    assert found is not None
    return found


async def asks(world: World, certificate: ClientCertificate) -> tuple[str, frozenset[str]]:
    principal = await world.services.authenticator.authenticate(certificate.authorization)
    return principal.tenant, principal.scopes


async def test_a_mapped_holder_is_its_tenant_with_its_scopes(world: World) -> None:
    """Whatever certificate he shows; who is not mapped is refused, and so is a name that is none or are two."""
    world.add_key("acme", "invoke")
    made = await create_key(world.registry, "acme", REPORTS, WALL, by_operator=True)

    assert (made.key, made.certificate) == ("", "reports")
    assert await asks(world, shown("reports")) == ("acme", frozenset({"read"}))
    for stranger in (shown("Reports"), shown("reports", "reports"), shown("rep orts"), shown()):
        with pytest.raises(Unauthenticated, match="is mapped to no tenant"):
            await asks(world, stranger)


async def test_it_ends_with_its_mapping(world: World) -> None:
    """At once when that is revoked; by time; and with its tenant. A holder can then be mapped anew."""
    world.add_key("acme", "invoke")
    made = await create_key(world.registry, "acme", REPORTS, WALL, by_operator=True)
    await asks(world, shown("reports"))
    await revoke_key(world.registry, "acme", made.id, WALL)
    with pytest.raises(Unauthenticated, match="mapped to no tenant"):
        await asks(world, shown("reports"))

    again = KeyRequest(certificate="reports", expires_in_s=60.0)
    await create_key(world.registry, "acme", again, WALL, by_operator=True)
    assert await asks(world, shown("reports", issued_at=WALL + 1.0)) == ("acme", frozenset({"invoke"}))
    world.wall.at += 61.0
    world.clock.at += 2.0
    with pytest.raises(Unauthenticated, match="has expired"):
        await asks(world, shown("reports"))


async def test_what_was_revoked_stays_so_when_its_name_is_mapped_again(world: World) -> None:
    """A stolen certificate: for another tenant too, after a mapping that expired, and after many other keys."""
    world.add_key("acme", "invoke")
    world.add_key("other", "invoke")
    stolen, new = shown("reports", issued_at=WALL - 86_400.0), shown("reports", issued_at=WALL + 60.0)
    made = await create_key(world.registry, "acme", REPORTS, WALL - 90_000.0, by_operator=True)
    await asks(world, stolen)
    await revoke_key(world.registry, "acme", made.id, WALL)
    for _ in range(DEAD_KEYS_KEPT + 5):
        spent = await create_key(world.registry, "acme", KeyRequest(), WALL)
        await revoke_key(world.registry, "acme", spent.id, WALL)

    short = KeyRequest(certificate="reports", expires_in_s=10.0)
    for tenant, request, at in (("other", short, WALL + 60.0), ("acme", REPORTS, WALL + 90.0)):
        await create_key(world.registry, tenant, request, at, by_operator=True)
        with pytest.raises(Unauthenticated, match="revoked after this certificate was issued"):
            await asks(world, stolen)
        assert (await asks(world, new))[0] == tenant


async def test_a_revocation_that_an_older_gateway_wrote_counts_too(world: World) -> None:
    """It says not when: what was issued before the name is mapped again is worthless."""
    world.add_key("acme", "invoke")
    made = await create_key(world.registry, "acme", REPORTS, WALL, by_operator=True)
    record = world.registry.key_records[made.id]
    world.registry.key_records[made.id] = msgspec.structs.replace(record, revoked=True)
    await create_key(world.registry, "acme", REPORTS, WALL + 60.5, by_operator=True)

    with pytest.raises(Unauthenticated, match="revoked after this certificate was issued"):
        await asks(world, shown("reports", issued_at=WALL + 58.0))
    assert await asks(world, shown("reports", issued_at=WALL + 60.0)) == ("acme", frozenset({"read"}))


def test_certificates_of_the_platforms_own_authority_begin_as_early_as_is_allowed_for() -> None:
    """Or one that is issued right after a revocation would be worthless."""
    assert CLOCK_SLACK.total_seconds() == ISSUE_SLACK_S


async def test_only_the_operator_maps_and_nobody_takes_anothers_name(world: World) -> None:
    """Names are of the whole platform: an admin who could map one would get another tenant's calls."""
    world.add_key("acme", "admin")
    with pytest.raises(Forbidden, match="map certificates"):
        await create_key(world.registry, "acme", REPORTS, WALL)
    made = await create_key(world.registry, "acme", REPORTS, WALL, by_operator=True)

    with pytest.raises(Conflict, match="mapped already"):
        await create_key(world.registry, "other", REPORTS, WALL, by_operator=True)
    with pytest.raises(Conflict, match="renew those"):
        await rotate_key(world.registry, "acme", made.id, RotateRequest(), WALL)
    assert [key.certificate for key in list_keys(world.registry, "acme") if key.id == made.id] == ["reports"]


async def test_no_client_writes_what_a_certificate_would(world: World) -> None:
    """The header that stands for one holds a secret of the process; the id of the record is no key either."""
    world.add_key("acme", "invoke")
    made = await create_key(world.registry, "acme", REPORTS, WALL, by_operator=True)
    genuine = shown("reports").authorization

    for forged in (b"certificate reports", b"Certificate 0 reports", genuine[:-1], b"Bearer " + genuine, b"Bearer "):
        with pytest.raises(Unauthenticated):
            await world.services.authenticator.authenticate(forged)
    with pytest.raises(Unauthenticated):
        await world.services.authenticator.authenticate(f"Bearer pl_live_{made.id}_{'0' * 36}".encode())
    assert holder_of(b"Bearer x") is None


def test_a_request_with_a_key_of_its_own_keeps_it() -> None:
    """And a certificate that has ended while its connection was open proves nothing."""
    certificate = shown("reports")
    plain, keyed, late = [(b"host", b"x")], [(b"authorization", b"Bearer k")], [(b"host", b"x")]

    certificate.add_to(plain, certificate.ends_at - 1)
    certificate.add_to(keyed, certificate.ends_at - 1)
    certificate.add_to(late, certificate.ends_at)

    assert plain == [(b"host", b"x"), (b"authorization", certificate.authorization)]
    assert keyed == [(b"authorization", b"Bearer k")]
    assert late == [(b"host", b"x")]
    assert certificate_of(None) is None
    assert certificate_of({}) is None
