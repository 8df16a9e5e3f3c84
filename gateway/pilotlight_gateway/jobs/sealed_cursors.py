"""Sealed cursors of lists: a plain sequence of the store would show how much all tenants write.

A cursor is the sequence, encrypted for its tenant (AES-256-GCM) with a secret that all gateways share.
"""

from __future__ import annotations

import base64
import os
import re
from typing import Protocol

from pilotlight_core.model.errors import BadInput, NotFound

PATTERN = re.compile("^[A-Za-z0-9_-]{48}$")
SECRET_BYTES = 32
NONCE_BYTES = 12


class SecretSource(Protocol):
    async def secret(self) -> bytes:
        """The same 32 random bytes for every gateway."""
        ...


class CursorSealer:
    def __init__(self, store: SecretSource) -> None:
        self._store = store
        self._secret = b""

    async def seal(self, tenant: str, place: int) -> str:
        """The tenant's cursor of a sequence."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(NONCE_BYTES)
        sealed = AESGCM(await self._key()).encrypt(nonce, place.to_bytes(8, "big"), tenant.encode())
        return base64.urlsafe_b64encode(nonce + sealed).decode()

    async def open(self, tenant: str, cursor: str) -> int:
        """The sequence of a cursor.

        Raises:
            BadInput: it is no cursor. NotFound: it is not the tenant's.
        """
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if not PATTERN.fullmatch(cursor):
            raise BadInput("cursor: expected the `next` of a page.", field="cursor")
        try:
            data = base64.urlsafe_b64decode(cursor.encode("ascii"))
            place = AESGCM(await self._key()).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], tenant.encode())
        except InvalidTag:
            raise NotFound("There is no such page any more: begin anew, without a cursor.") from None
        return int.from_bytes(place, "big")

    async def _key(self) -> bytes:
        self._secret = self._secret or await self._store.secret()
        return self._secret
