"""API keys: `pl_live_<id: 8>_<secret: 30><crc: 6>`, all base 62.

The id finds the record, the secret (178 random bits) proves possession, and the checksum over all that stands before it
lets scanners tell a leaked key from a look-alike without asking anybody. Only the secret's sha256 is kept: a random
secret of this size needs no slow hash. A key is shown once, when it is made.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import zlib
from typing import NamedTuple

import msgspec

from pilotlight_core.host.registry import KeyRecord
from pilotlight_core.model.api import KeyRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_gateway.auth import SCOPES, Principal
from pilotlight_gateway.registry_port import RegistryPort

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_LENGTH, SECRET_LENGTH, CRC_LENGTH = 8, 30, 6
KEY = re.compile(r"pl_live_([0-9A-Za-z]{8})_([0-9A-Za-z]{30})([0-9A-Za-z]{6})")
KEYS_PER_TENANT = 1_000
LONGEST_LABEL = 100
LONGEST_LIFE = 10 * 365 * 86_400.0


class ApiKey(NamedTuple):
    """The parts of a key."""

    id: str
    secret: str

    def __str__(self) -> str:
        body = f"pl_live_{self.id}_{self.secret}"
        return body + _checksum(body)

    @property
    def sha256(self) -> str:
        """What is kept of the secret."""
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def opens(self, record: KeyRecord) -> bool:
        """Whether it is the key of `record`, in constant time."""
        return hmac.compare_digest(self.sha256, record.sha256)


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `POST /v1/keys`: the only time that the key is shown."""

    id: str
    key: str
    scopes: tuple[str, ...]
    expires_at: float | None


class KeyInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A key as `GET /v1/keys` lists it."""

    id: str
    label: str
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None
    revoked: bool


def new_key() -> ApiKey:
    """A fresh random key."""
    return ApiKey(_random(ID_LENGTH), _random(SECRET_LENGTH))


def parse_key(text: str) -> ApiKey | None:
    """The parts of a key; None if it is none or mistyped."""
    found = KEY.fullmatch(text)
    if found is None or _checksum(text[:-CRC_LENGTH]) != found[3]:
        return None
    return ApiKey(found[1], found[2])


def check_request(request: KeyRequest) -> None:
    """Refuse a key that may not be made.

    Raises:
        BadInput: naming the field.
    """
    unknown = [scope for scope in request.scopes if scope not in SCOPES]
    if unknown or not request.scopes:
        raise BadInput(f"scopes: expected some of {', '.join(SCOPES)}, got {list(request.scopes)}.", field="scopes")
    if request.expires_in_s is not None and not 0 < request.expires_in_s <= LONGEST_LIFE:
        raise BadInput("expires_in_s: expected more than 0 and at most ten years.", field="expires_in_s")
    if len(request.label) > LONGEST_LABEL or not request.label.isprintable():
        raise BadInput(f"label: expected at most {LONGEST_LABEL} printable characters.", field="label")


async def create_key(registry: RegistryPort, tenant: str, request: KeyRequest, at: float) -> NewKey:
    """Make a key at the unix second `at`.

    Raises:
        BadInput: naming the field that is wrong.
        Conflict: if the tenant has too many.
    """
    check_request(request)
    if sum(not key.revoked for key in registry.keys(tenant)) >= KEYS_PER_TENANT:
        raise Conflict(f"The tenant has {KEYS_PER_TENANT} keys already: revoke some first.")
    key = new_key()
    record = KeyRecord(
        id=key.id,
        tenant=tenant,
        sha256=key.sha256,
        scopes=tuple(sorted(set(request.scopes))),
        created_at=at,
        expires_at=None if request.expires_in_s is None else at + request.expires_in_s,
        label=request.label,
    )
    await registry.put_key(record)
    return NewKey(id=key.id, key=str(key), scopes=record.scopes, expires_at=record.expires_at)


def list_keys(registry: RegistryPort, tenant: str) -> list[KeyInfo]:
    """The tenant's keys, newest first, without their secrets."""
    newest = sorted(registry.keys(tenant), key=lambda key: -key.created_at)
    return [
        KeyInfo(
            id=key.id,
            label=key.label,
            scopes=key.scopes,
            created_at=key.created_at,
            expires_at=key.expires_at,
            revoked=key.revoked,
        )
        for key in newest
    ]


async def revoke_key(registry: RegistryPort, principal: Principal, key_id: str) -> None:
    """Make a key of the caller's tenant useless within seconds, everywhere. Repeating it changes nothing.

    Raises:
        NotFound: if there is none.
    """
    record = await registry.key(key_id) if re.fullmatch(r"[0-9A-Za-z]{8}", key_id) else None
    if record is None or record.tenant != principal.tenant:
        raise NotFound(f"There is no key {key_id}.")
    if not record.revoked:
        await registry.put_key(msgspec.structs.replace(record, revoked=True))


def _random(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def _checksum(body: str) -> str:
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(CRC_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
