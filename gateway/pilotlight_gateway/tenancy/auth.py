"""The caller's identity, from an API key, an issuer's token or a verified certificate alone: never from a body or an
address."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from pilotlight_core.model.api.seeing.session_api import SESSION_PATTERN
from pilotlight_core.model.errors import Forbidden, Unauthenticated, Unavailable
from pilotlight_core.model.records.issuers import ISSUER_KEYS
from pilotlight_core.model.records.sessions import SESSION_KEYS
from pilotlight_core.model.tenancy import KeyRecord
from pilotlight_gateway.tenancy.api_keys import OPERATOR, parse_key
from pilotlight_gateway.tenancy.client_certificates import CertificateHolder, certificate_key_id, holder_of
from pilotlight_gateway.tenancy.registry_port import TenantRegistry

log = structlog.get_logger(__name__)

TRUSTED_FOR = 1.0
"""Seconds for which a valid key is not checked again, unless the mirror reports a change. While the registry cannot be
reached, keys are accepted for this much longer than the mirror's own bound."""
TRUSTED_AT_MOST = 4_096
LONGEST_AUTHORIZATION = 128
"""Twice the length with a key: a longer header is no key, and is cached only if it is a good token."""
LONGEST_TRUSTED = 4_096
"""Bytes of a header that is cached."""
LOOKUPS_AT_A_TIME = 8
"""Keys that the mirror does not have may be new, so the bus is asked; guesses must not flood it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenOrigin:
    """Which issuer's token a principal has shown."""

    issuer: str
    """The name of its record."""
    url: str
    subject: str
    ends_at: float
    """The unix second from which on nobody takes the token."""
    changed_at: float
    """Of the record by which it was read."""
    terms: tuple[object, ...] = ()
    """By which that record had it verified and read."""
    groups: tuple[str, ...] = ()
    tenant_values: tuple[str, ...] = ()
    """What it said of its holder's groups and tenant."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    """The holder of a valid credential."""

    tenant: str
    key_id: str
    scopes: frozenset[str]
    origin: TokenOrigin | None = None
    """None: an API key, or a certificate."""
    break_glass: bool = False
    """Whether each of its requests is written down."""
    session: str = ""
    """The id of the session that stands for the key; "": none does."""

    @property
    def operator(self) -> bool:
        """Whether it runs the platform."""
        return OPERATOR in self.scopes

    def may(self, *scopes: str) -> bool:
        """Whether one of `scopes` is held; `admin` stands for all but `operator`."""
        return not self.scopes.isdisjoint(scopes) or ("admin" in self.scopes and scopes != (OPERATOR,))

    def require(self, *scopes: str) -> None:
        """Refuse unless one of `scopes` is held, as `may` has it.

        Raises:
            Forbidden: naming them.
        """
        if not self.may(*scopes):
            raise Forbidden(f"This needs a key with the scope {' or '.join(scopes)}.", scope=scopes[0])


NOBODY = Principal(tenant="", key_id="", scopes=frozenset())
_SESSION = re.compile(SESSION_PATTERN)


class Authenticator(Protocol):
    """Finds the caller of a request."""

    async def authenticate(self, authorization: bytes) -> Principal:
        """The principal of an `Authorization` header, or, for browsers' sessions, of a cookie's value.

        Raises:
            Unauthenticated: no valid credential (`key_expired`: it was valid).
            Unavailable: the registry cannot be reached.
        """
        ...


class CallAuthenticator(Authenticator, Protocol):
    """One that need not look for most callers."""

    def known(self, authorization: bytes) -> Principal | None:
        """The principal of a header that was found valid a moment ago; None: `authenticate` has to look."""
        ...


class TokenChecks(Protocol):
    """Finds whom an issuer's token is about."""

    async def authenticate(self, token: bytes) -> Principal:
        """Raises as `Authenticator`, and Forbidden: nothing on record gives it access."""
        ...

    def why_ended(self, principal: Principal) -> Unauthenticated | None:
        """Why its principal is valid no more."""
        ...


class SessionChecks(Protocol):
    """Finds whom a session's token is about."""

    async def authenticate(self, token: str) -> Principal:
        """Raises Unauthenticated."""
        ...

    def why_ended(self, principal: Principal) -> Unauthenticated | None:
        """Why its session is valid no more."""
        ...

    def is_of_token(self, principal: Principal) -> bool:
        """Whether an issuer's token stands behind its session, and no key."""
        ...


class KeyAuthenticator:
    """Checks API keys against the registry's mirror, and has `tokens` and `sessions` checked. `clock` is monotonic,
    `wall` unix seconds."""

    def __init__(
        self,
        registry: TenantRegistry,
        tokens: TokenChecks | None = None,
        sessions: SessionChecks | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._tokens = tokens
        self._sessions = sessions
        self._clock = clock
        self._wall = wall
        self._trusted: dict[bytes, tuple[float, Principal]] = {}
        self._lookups = asyncio.Semaphore(LOOKUPS_AT_A_TIME)
        self._changes = 0
        registry.on_change.append(self._changed)

    def why_ended(self, principal: Principal) -> Unauthenticated | None:
        """Why a principal that was valid is so no more; None: it is, as far as the mirror knows."""
        if principal.origin is not None and self._tokens is not None:
            return self._tokens.why_ended(principal)
        if principal.session and self._sessions is not None:
            if ended := self._sessions.why_ended(principal):
                return ended
            if self._sessions.is_of_token(principal):
                return self._why_tenant_ended(principal)
        key, tenant = self._registry.key_nowait(principal.key_id), self._registry.tenant_nowait(principal.tenant)
        if key is None or key.revoked:
            return Unauthenticated("The API key was revoked.")
        if key.expires_at is not None and self._wall() >= key.expires_at:
            return Unauthenticated("The API key has expired.", code="key_expired")
        if tenant is not None and tenant.disabled:
            return Unauthenticated("The API key's tenant is disabled.")
        return None

    def _why_tenant_ended(self, principal: Principal) -> Unauthenticated | None:
        tenant = self._registry.tenant_nowait(principal.tenant)
        return Unauthenticated("The session's tenant is disabled.") if tenant is None or tenant.disabled else None

    def known(self, authorization: bytes) -> Principal | None:
        found = self._trusted.get(authorization)
        return found[1] if found is not None and self._clock() < found[0] else None

    async def authenticate(self, authorization: bytes) -> Principal:
        if (principal := self.known(authorization)) is not None:
            return principal
        token = self._token_in(authorization)
        if token is None and len(authorization) > LONGEST_AUTHORIZATION:
            raise Unauthenticated(
                f"The Authorization header is longer than {LONGEST_AUTHORIZATION} bytes, and no issuer's token."
            )
        at = self._clock()
        self._trusted.pop(authorization, None)
        if not self._registry.fresh(at):
            raise Unavailable("The registry cannot be reached, so no key can be checked.", code="starting")
        changes = self._changes
        if token is not None and self._tokens is not None:
            principal = await self._tokens.authenticate(token)
            origin = principal.origin
            if changes == self._changes and origin is not None and len(authorization) <= LONGEST_TRUSTED:
                self._trust(authorization, principal, at + min(TRUSTED_FOR, origin.ends_at - self._wall()))
            return principal
        if self._sessions is not None and (session := _session_in(authorization)):
            principal = await self._sessions.authenticate(session)
            await self._check_tenant(principal.tenant)
            if changes == self._changes:
                self._trust(authorization, principal, at + TRUSTED_FOR)
            return principal
        record = await self._valid_record(authorization)
        principal = Principal(
            tenant=record.tenant, key_id=record.id, scopes=frozenset(record.scopes), break_glass=record.break_glass
        )
        if principal.break_glass:
            log.error("a break-glass key is used", key=record.id, tenant=record.tenant)  # whoever is on call asks why
        elif changes == self._changes:  # or what was just read may be the past already
            self._trust(authorization, principal, at + self._seconds_of_trust(record))
        return principal

    def _changed(self, key: str, record: Any) -> None:
        if key.startswith(SESSION_KEYS):
            # They come and go as people do, and one that is new, or was used, takes nobody's trust away.
            if record is None:
                self._changes += 1
                ended = key.removeprefix(SESSION_KEYS)
                self._trusted = {name: one for name, one in self._trusted.items() if one[1].session != ended}
        elif key.startswith(("key.", "tenant.", ISSUER_KEYS)):
            self._changes += 1
            self._trusted.clear()

    def _token_in(self, authorization: bytes) -> bytes | None:
        """The issuer's token in a header; None: it is for something else."""
        if self._tokens is None or len(authorization) <= LONGEST_AUTHORIZATION:
            return None
        kind, _, text = authorization.partition(b" ")
        return text.strip() if kind.lower() == b"bearer" and text.lstrip().startswith(b"ey") else None

    async def _valid_record(self, authorization: bytes) -> KeyRecord:
        if (holder := holder_of(authorization)) is not None:
            return await self._mapped_record(holder)
        kind, _, text = authorization.decode("latin-1").partition(" ")
        if not authorization:
            raise Unauthenticated("There is no Authorization header.")
        key = parse_key(text.strip()) if kind.lower() == "bearer" else None
        if key is None:
            raise Unauthenticated("The Authorization header holds no API key, or a mistyped one.")
        record = await self._record(key.id)
        if record is None or not key.opens(record) or record.revoked:
            raise Unauthenticated("The API key is not known, or was revoked.")
        if record.expires_at is not None and self._wall() >= record.expires_at:
            raise Unauthenticated("The API key has expired.", code="key_expired")
        await self._check_tenant(record.tenant)
        return record

    async def _mapped_record(self, holder: CertificateHolder) -> KeyRecord:
        name = holder.name
        record = await self._record(certificate_key_id(name))
        if record is None or record.certificate != name or record.revoked:
            raise Unauthenticated(f"The client certificate's holder, {name!r}, is mapped to no tenant.")
        if not holder.is_since(record.issued_from):
            raise Unauthenticated(f"{name!r} was revoked after this certificate was issued: it needs a new one.")
        if record.expires_at is not None and self._wall() >= record.expires_at:
            raise Unauthenticated(f"The mapping of the certificate's holder, {name!r}, has expired.")
        await self._check_tenant(record.tenant)
        return record

    async def _record(self, key_id: str) -> KeyRecord | None:
        record = self._registry.key_nowait(key_id)
        if record is None:
            async with self._lookups:
                record = await self._registry.key(key_id)
        return record

    async def _check_tenant(self, name: str) -> None:
        tenant = self._registry.tenant_nowait(name) or await self._registry.tenant(name)
        if tenant is None or tenant.disabled:
            raise Unauthenticated("The API key's tenant is disabled.")

    def _seconds_of_trust(self, record: KeyRecord) -> float:
        if record.expires_at is None:
            return TRUSTED_FOR
        return min(TRUSTED_FOR, record.expires_at - self._wall())

    def _trust(self, authorization: bytes, principal: Principal, expires_at: float) -> None:
        if len(self._trusted) >= TRUSTED_AT_MOST:
            self._trusted.pop(next(iter(self._trusted)))
        self._trusted[authorization] = (expires_at, principal)


def _session_in(authorization: bytes) -> str:
    """The session's token in a header; "": it is for something else."""
    kind, _, text = authorization.decode("latin-1").partition(" ")
    text = text.strip()
    return text if kind.lower() == "bearer" and _SESSION.fullmatch(text) else ""
