"""API keys: `pl_live_<id: 8>_<secret: 30><crc: 6>`, all base 62.

The id finds the record, and the secret (178 random bits) proves possession. The checksum lets scanners recognise a
leaked key offline. Only the secret's sha256 is stored: a random secret of this size needs no slow hash.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import zlib
from typing import NamedTuple

import msgspec

from pilotlight_core.model.api.call_api import KeyRequest
from pilotlight_core.model.api.tenancy_api import RotateRequest
from pilotlight_core.model.errors import BadInput, Conflict, Forbidden, NotFound
from pilotlight_core.model.tenancy import KeyRecord
from pilotlight_gateway.tenancy.client_certificates import certificate_key_id
from pilotlight_gateway.tenancy.quotas import check_quota
from pilotlight_gateway.tenancy.registry_port import RegistryPort, TenantRegistry

OPERATOR = "operator"
SCOPES = ("invoke", "deploy", "read", "admin", OPERATOR)
"""What a key may do. `admin` may do everything in its tenant; `operator` runs the platform (tenants, tiers, limits and
nodes) and is no part of `admin`."""
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_LENGTH, SECRET_LENGTH, CRC_LENGTH = 8, 30, 6
KEY = re.compile(r"pl_live_([0-9A-Za-z]{8})_([0-9A-Za-z]{30})([0-9A-Za-z]{6})")
KEYS_PER_TENANT = 1_000
"""Whatever its limits are."""
DEAD_KEYS_KEPT = 100
"""Ended keys of a tenant that are kept; the oldest are deleted first. Those of revoked certificates, which only an
operator makes, stay."""
FORGOTTEN_AT_A_TIME = 10


class ApiKey(NamedTuple):
    """The parts of a key."""

    id: str
    secret: str

    def __str__(self) -> str:
        body = f"pl_live_{self.id}_{self.secret}"
        return body + _checksum(body)

    @property
    def sha256(self) -> str:
        """The stored hash of the secret."""
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def opens(self, record: KeyRecord) -> bool:
        """Whether this is the key of `record`, in constant time."""
        return hmac.compare_digest(self.sha256, record.sha256)


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `POST /v1/keys` and `…/rotate`: only here the key is shown."""

    id: str
    key: str
    """"": a certificate stands for it."""
    scopes: tuple[str, ...]
    expires_at: float | None
    certificate: str = ""
    replaces: str = ""
    """The key that this one replaces."""
    replaced_until: float | None = None
    """The unix second at which that one ends."""
    break_glass: bool = False


class KeyInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A key in `GET /v1/keys`."""

    id: str
    label: str
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None
    revoked: bool
    replaced_by: str = ""
    certificate: str = ""
    break_glass: bool = False


class RevokedKey(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `DELETE /v1/keys/{id}`."""

    id: str
    revoked: bool = True
    already: bool = False


def new_key() -> ApiKey:
    return ApiKey(_random(ID_LENGTH), _random(SECRET_LENGTH))


def parse_key(text: str) -> ApiKey | None:
    """The parts of a key; None if it is malformed or mistyped."""
    found = KEY.fullmatch(text)
    if found is None or _checksum(text[:-CRC_LENGTH]) != found[3]:
        return None
    return ApiKey(found[1], found[2])


def is_alive(record: KeyRecord, at: float) -> bool:
    """Whether the key is valid at the unix second `at`."""
    return not record.revoked and (record.expires_at is None or at < record.expires_at)


async def create_key(
    registry: RegistryPort, tenant: str, request: KeyRequest, at: float, *, by_operator: bool = False
) -> NewKey:
    """Create a key of `tenant` at the unix second `at`.

    Raises:
        Forbidden: the scope is `operator`, or it is for a certificate, and the caller is no operator.
        QuotaExceeded: the tenant has too many keys.
        Conflict: the certificate's holder is mapped already.
    """
    if request.certificate and not by_operator:  # names are of the whole platform: a tenant could take another's
        raise Forbidden("Only a key with the scope operator can map certificates.", scope=OPERATOR)
    if OPERATOR in request.scopes and not by_operator:
        raise Forbidden("Only a key with the scope operator can make another one.", scope=OPERATOR)
    break_glass = request.break_glass is True
    if break_glass and (request.scopes != (OPERATOR,) or request.certificate):
        # Calls are not written down one by one, so it can make none.
        raise BadInput("break_glass: expected the scope operator alone, and no certificate.", field="break_glass")
    await _make_room(registry, tenant, at)
    expires_at = None if request.expires_in_s is None else at + request.expires_in_s
    if request.certificate:
        return await _map_certificate(registry, tenant, request, at, expires_at)
    return await _put_new(registry, tenant, request.scopes, request.label, at, expires_at, break_glass=break_glass)


async def rotate_key(
    registry: RegistryPort, tenant: str, key_id: str, request: RotateRequest, at: float, *, by_operator: bool = False
) -> NewKey:
    """Create a key with the same scopes and label; the old one stays valid for `request.overlap_s` seconds.

    Raises:
        Forbidden: the key is an operator's and the caller is not.
        NotFound: the tenant has no such key.
        Conflict: the key has ended or was rotated before.
    """
    old = _rotatable(await _own_key(registry, tenant, key_id, by_operator=by_operator), at)
    life = request.expires_in_s
    if life is None and old.expires_at is not None:
        life = old.expires_at - old.created_at
    await _make_room(registry, tenant, at)
    expires_at = None if life is None else at + life
    made = await _put_new(registry, tenant, old.scopes, old.label, at, expires_at, break_glass=old.break_glass)
    until = at + request.overlap_s if old.expires_at is None else min(old.expires_at, at + request.overlap_s)

    def replaced(present: KeyRecord | None) -> KeyRecord:
        if present is None:
            raise NotFound(f"There is no key {key_id}.")
        return msgspec.structs.replace(_rotatable(present, at), expires_at=until, replaced_by=made.id)

    try:
        await registry.change_key(key_id, replaced)
    except BaseException:
        await _end(registry, made.id, at)
        raise
    return msgspec.structs.replace(made, replaces=key_id, replaced_until=until)


def list_keys(registry: TenantRegistry, tenant: str) -> list[KeyInfo]:
    """The tenant's keys, newest first."""
    newest = sorted(registry.keys(tenant), key=lambda key: -key.created_at)
    return [msgspec.convert(key, KeyInfo, from_attributes=True) for key in newest]


async def revoke_key(
    registry: TenantRegistry, tenant: str, key_id: str, at: float, *, by_operator: bool = False, force: bool = False
) -> RevokedKey:
    """Revoke a key, everywhere within a second.

    Raises:
        NotFound: the tenant has no such key.
        Forbidden: the key is an operator's and the caller is not.
        Conflict: no other key could manage keys, and `force` is not set.
    """
    record = await _own_key(registry, tenant, key_id, by_operator=by_operator)
    if record.revoked:
        return RevokedKey(id=key_id, already=True)
    if not force and is_alive(record, at):
        _check_not_last(registry, record, at)
    await _end(registry, key_id, at)
    return RevokedKey(id=key_id)


def _check_not_last(registry: TenantRegistry, record: KeyRecord, at: float) -> None:
    for scope, whose, tenant in (("admin", record.tenant, record.tenant), (OPERATOR, "the platform", None)):
        others = (key for key in registry.keys(tenant) if key.id != record.id)
        if scope in record.scopes and not any(scope in key.scopes and is_alive(key, at) for key in others):
            raise Conflict(
                f"{record.id} is the last key of {whose} with the scope {scope}: without it nobody could make another. "
                f"Make one first, or revoke it with force=true.",
                field="force",
            )


async def _own_key(registry: TenantRegistry, tenant: str, key_id: str, *, by_operator: bool) -> KeyRecord:
    record = await registry.key(key_id) if re.fullmatch(r"[0-9A-Za-z]{8}", key_id) else None
    if record is None or record.tenant != tenant:
        raise NotFound(f"There is no key {key_id[:100]}.")
    if OPERATOR in record.scopes and not by_operator:
        raise Forbidden("Only a key with the scope operator can change this one.", scope=OPERATOR)
    return record


def _rotatable(record: KeyRecord, at: float) -> KeyRecord:
    if record.certificate:
        raise Conflict(f"Certificates of {record.certificate} stand for the key {record.id}: renew those.")
    if not is_alive(record, at):
        raise Conflict(f"The key {record.id} has ended: make a new one.")
    if record.replaced_by:
        raise Conflict(f"The key {record.id} was rotated already: {record.replaced_by} follows it.")
    return record


async def _put_new(
    registry: TenantRegistry,
    tenant: str,
    scopes: tuple[str, ...],
    label: str,
    at: float,
    expires_at: float | None,
    *,
    break_glass: bool,
) -> NewKey:
    key = new_key()
    record = KeyRecord(
        id=key.id,
        tenant=tenant,
        sha256=key.sha256,
        scopes=tuple(sorted(set(scopes))),
        created_at=at,
        expires_at=expires_at,
        label=label,
        break_glass=break_glass,
    )

    def only_new(present: KeyRecord | None) -> KeyRecord:
        if present is not None:  # one in 2 * 10^14
            raise Conflict("The key's id is taken: try again.")
        return record

    await registry.change_key(key.id, only_new)
    return NewKey(id=key.id, key=str(key), scopes=record.scopes, expires_at=expires_at, break_glass=break_glass)


async def _map_certificate(
    registry: TenantRegistry, tenant: str, request: KeyRequest, at: float, expires_at: float | None
) -> NewKey:
    holder = request.certificate or ""
    record = KeyRecord(
        id=certificate_key_id(holder),
        tenant=tenant,
        sha256="",
        scopes=tuple(sorted(set(request.scopes))),
        created_at=at,
        expires_at=expires_at,
        label=request.label,
        certificate=holder,
    )

    def unless_mapped(present: KeyRecord | None) -> KeyRecord:
        if present is not None and (is_alive(present, at) or present.certificate != holder):
            raise Conflict(f"{holder} is mapped already, by the key {present.id}: revoke that first.")
        return msgspec.structs.replace(record, issued_from=0.0 if present is None else _issued_from(present, at))

    await registry.change_key(record.id, unless_mapped)
    return NewKey(id=record.id, key="", scopes=record.scopes, expires_at=expires_at, certificate=holder)


def _issued_from(ended: KeyRecord, at: float) -> float:
    """From when on certificates of the holder count if it is mapped again at the unix second `at`."""
    return (ended.revoked_at or at) if ended.revoked else ended.issued_from


async def _make_room(registry: RegistryPort, tenant: str, at: float) -> None:
    alive, dead = 0, []
    for record in registry.keys(tenant):
        if is_alive(record, at):
            alive += 1
        elif not (record.certificate and _issued_from(record, at)):  # or what was revoked might be valid again
            dead.append(record)
    allowed = min(registry.limits(tenant, "").tenant.keys or KEYS_PER_TENANT, KEYS_PER_TENANT)
    check_quota(tenant, "keys", allowed, alive + 1, "keys", "revoke some first")
    too_many = max(0, len(dead) - DEAD_KEYS_KEPT)
    for record in sorted(dead, key=lambda key: key.created_at)[: min(too_many, FORGOTTEN_AT_A_TIME)]:
        await registry.change_key(record.id, lambda _: None)


async def _end(registry: TenantRegistry, key_id: str, at: float) -> None:
    def revoked(present: KeyRecord | None) -> KeyRecord | None:
        if present is None or present.revoked:
            return present
        return msgspec.structs.replace(present, revoked=True, revoked_at=at)

    await registry.change_key(key_id, revoked)


def _random(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(CRC_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
