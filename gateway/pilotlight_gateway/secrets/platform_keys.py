"""The key that seals the data keys of tenants: the port, and how keys that are bytes seal."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Protocol

KEY_BYTES = 32
NONCE_BYTES = 12


class NoPlatformKey(Exception):
    """There is no such key, it may not be used, or it did not seal this; the message says which."""


class PlatformKeyDown(Exception):
    """The key service does not answer."""


class PlatformKey(Protocol):
    """Methods raise NoPlatformKey and PlatformKeyDown. What is sealed for one tenant opens for no other."""

    async def identity(self, *, create: bool) -> str:
        """What names the key, the same in every gateway that has it; one that is made first, if it may be."""
        ...

    async def seal(self, tenant: str, data_key: bytes) -> bytes: ...

    async def open(self, tenant: str, sealed: bytes) -> bytes: ...


@dataclass(kw_only=True, eq=False)
class MemoryPlatformKey:
    """A `PlatformKey` in memory. Tests set `name`, and `down` or `refused`."""

    name: str = "memory:1"
    key: bytes = field(default_factory=lambda: os.urandom(KEY_BYTES))
    down: bool = False
    refused: bool = False
    opened: int = 0

    async def identity(self, *, create: bool) -> str:  # noqa: ARG002
        self._check()
        return self.name

    async def seal(self, tenant: str, data_key: bytes) -> bytes:
        self._check()
        return seal_bytes(self.key, data_key, data_key_context(tenant))

    async def open(self, tenant: str, sealed: bytes) -> bytes:
        self._check()
        self.opened += 1
        try:
            return open_bytes(self.key, sealed, data_key_context(tenant))
        except ValueError as error:
            raise NoPlatformKey(str(error)) from None

    def _check(self) -> None:
        if self.down:
            raise PlatformKeyDown("the key does not answer")
        if self.refused:
            raise NoPlatformKey("the key may not be used")


def data_key_context(tenant: str) -> bytes:
    """What a data key is sealed with, so that it opens for its tenant alone."""
    return b"data key of " + tenant.encode()


def seal_bytes(key: bytes, data: bytes, context: bytes) -> bytes:
    """`data` sealed by a key (AES-256-GCM), to be opened with the same context."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, data, context)


def open_bytes(key: bytes, sealed: bytes, context: bytes) -> bytes:
    """What was sealed. Raises ValueError: by another key, with another context, or it was changed."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], context)
    except InvalidTag:
        raise ValueError("it was sealed by another key, for something else, or was changed") from None
