"""Who asks: from the credential alone, never from a body or an address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pilotlight_core.model.errors import Forbidden

SCOPES = ("invoke", "deploy", "read", "admin")
"""What a key may do; `admin` may do everything in its tenant."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    """A credential that was found valid."""

    tenant: str
    key_id: str
    scopes: frozenset[str]

    def require(self, *scopes: str) -> None:
        """Refuse unless one of `scopes` is held.

        Raises:
            Forbidden: naming them.
        """
        if self.scopes.isdisjoint(scopes) and "admin" not in self.scopes:
            raise Forbidden(f"This needs a key with the scope {' or '.join(scopes)}.", scope=scopes[0])


NOBODY = Principal(tenant="", key_id="", scopes=frozenset())


class Authenticator(Protocol):
    """Tells who asks."""

    async def authenticate(self, authorization: bytes) -> Principal:
        """The principal of an `Authorization` header.

        Raises:
            Unauthenticated: without a valid credential (`key_expired` when it was one).
            Unavailable: when it cannot be known now.
        """
        ...
