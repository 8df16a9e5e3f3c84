"""What is stored of secrets. Values and data keys are sealed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec


class SecretRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A secret. Key: `secret.{tenant}.{name}`."""

    tenant: str
    name: str
    number: int
    """Of its value: counts up from 1."""
    created_at: float
    """Unix seconds."""
    changed_at: float
    changed_by: str
    """The id of the API key that set it."""
    data_key: str
    """The id of the `DataKeyRecord` that seals it."""
    sealed: bytes
    """AES-256-GCM: 12 bytes of nonce, then the sealed value. Never the same for two values that were set."""


class DataKeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The data key of a tenant, which seals its values. Key: `key.{tenant}`.

    Where the tenant was erased one without key and id stays, so that no process makes another.
    """

    tenant: str
    id: str
    platform_key: str
    """What it is sealed by: `PlatformKey.identity`."""
    sealed: bytes
    created_at: float

    @property
    def is_destroyed(self) -> bool:
        """Whether the tenant was erased."""
        return not self.sealed


class PlatformKeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The key by which data keys are sealed, so that gateways with another one notice. Key: `platform`."""

    identity: str


def revision_of(secrets: Mapping[str, SecretRecord]) -> str:
    """Names these values: another, once one of them is set anew, also to what it was before.

    Containers report it, so how it is computed stays: else a later release would replace all of them.
    """
    digest = hashlib.sha256()
    for name in sorted(secrets):
        digest.update(f"{name}\0".encode() + hashlib.sha256(secrets[name].sealed).digest())
    return digest.hexdigest()[:16]
