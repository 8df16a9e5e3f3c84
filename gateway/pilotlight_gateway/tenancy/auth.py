"""The caller's identity: from the credential alone, never from a body or an address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pilotlight_core.model.errors import Forbidden

OPERATOR = "operator"
SCOPES = ("invoke", "deploy", "read", "admin", OPERATOR)
"""What a key may do. `admin` may do everything in its tenant; `operator` runs the platform (tenants, tiers, limits and
nodes) and is no part of `admin`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    """A credential that was found valid."""

    tenant: str
    key_id: str
    scopes: frozenset[str]

    @property
    def operator(self) -> bool:
        """Whether it runs the platform."""
        return OPERATOR in self.scopes

    def require(self, *scopes: str) -> None:
        """Refuse unless one of `scopes` is held; `admin` stands for all but `operator`.

        Raises:
            Forbidden: naming them.
        """
        if self.scopes.isdisjoint(scopes) and ("admin" not in self.scopes or scopes == (OPERATOR,)):
            raise Forbidden(f"This needs a key with the scope {' or '.join(scopes)}.", scope=scopes[0])


NOBODY = Principal(tenant="", key_id="", scopes=frozenset())


class Authenticator(Protocol):
    """Finds the caller of a request."""

    async def authenticate(self, authorization: bytes) -> Principal:
        """The principal of an `Authorization` header.

        Raises:
            Unauthenticated: without a valid credential (`key_expired` when it was one).
            Unavailable: when it cannot be known now.
        """
        ...
