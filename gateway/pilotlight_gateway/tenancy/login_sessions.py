"""Sessions: what a browser has in place of an API key, or of an issuer's token, for some hours. `pl_session_<43>`, 256
random bits in base 64.

The registry has the digest of a token alone. Each request looks at the key's own record again, so a session ends with
its key; one that an issuer's token has opened ends with that token, and when its issuer's record changes. A link into
the dashboard has a code, `pl_login_<43>`, which is exchanged once, for one session.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from pilotlight_core.bus import BusError
from pilotlight_core.model.api.seeing.session_api import CODE_PATTERN, SESSION_PATTERN, NewSession, SessionInfo
from pilotlight_core.model.errors import Forbidden, PilotlightError, Unauthenticated
from pilotlight_core.model.records.sessions import SessionRecord
from pilotlight_core.model.tenancy import KeyRecord
from pilotlight_gateway.tenancy.api_keys import is_alive
from pilotlight_gateway.tenancy.auth import LOOKUPS_AT_A_TIME, Principal, TokenOrigin
from pilotlight_gateway.tenancy.registry_port import IssuerRegistry, RegistryPort, TenantRegistry

SESSION_S = 8 * 3_600.0
IDLE_S = 30 * 60.0
"""Without a request."""
SEEN_EVERY_S = 5 * 60.0
"""Between two notes that it was used: what is between them counts as use."""
CODE_S = 15 * 60.0
SESSIONS_PER_KEY = 32
"""Codes among them. One more ends the one that was used least lately."""
SESSIONS_PER_TENANT = 512
"""... of a tenant, which may make any number of keys one after another."""
FORGOTTEN_AT_A_TIME = 32
RANDOM_BYTES = 32
ID_DIGITS = 48
"""Hexadecimal ones of the digest: as many as a name has room for."""
SESSION, CODE = re.compile(SESSION_PATTERN), re.compile(CODE_PATTERN)


def id_of_token(token: str) -> str:
    """The id under which the registry knows a token or a code."""
    return hashlib.sha256(token.encode()).hexdigest()[:ID_DIGITS]


def is_open(record: SessionRecord, at: float) -> bool:
    """Whether a session, or the code of a link, is still good at the unix second `at`."""
    return at < record.expires_at and (record.link or at - record.seen_at < IDLE_S + SEEN_EVERY_S)


async def open_session(registry: RegistryPort, principal: Principal, at: float, *, link: bool = False) -> NewSession:
    """A new session of whoever has a key, or with `link` the code of one; or of whoever has an issuer's token.

    Raises:
        Forbidden: it is neither, or a key whose requests are written down one by one.
    """
    if principal.session:
        raise Forbidden("A session opens no other one: use the API key.")
    if principal.origin is not None and not link:
        await _make_room(registry, principal.tenant, principal.key_id, at)
        return await _put_token_session(registry, principal, principal.origin, at)
    record = registry.key_nowait(principal.key_id) or await registry.key(principal.key_id)
    if principal.origin is not None or record is None or record.certificate:
        raise Forbidden("Only an API key makes a link, and it or a token of an issuer a session: no certificate does.")
    if record.break_glass:
        raise Forbidden("A break-glass key opens no session: each request with it is written down.")
    await _make_room(registry, record.tenant, record.id, at)
    return await _put_session(registry, record, at, link=link)


async def exchange_code(registry: RegistryPort, code: str, at: float) -> NewSession:
    """The session that a link's code opens, once.

    Raises:
        Unauthenticated: it was used, has expired, or never was; or its key is no longer valid.
    """
    found: SessionRecord | None = None

    def taken(present: SessionRecord | None) -> SessionRecord | None:
        nonlocal found
        found = present
        return present if present is not None and not present.link else None

    await registry.change_session(id_of_token(code), taken)
    if found is None or not found.link or not is_open(found, at):
        raise Unauthenticated("The link was used, or has expired: have a new one made.")
    record = registry.key_nowait(found.key) or await registry.key(found.key)
    if record is None or not is_alive(record, at):
        raise Unauthenticated("The API key of this link is valid no more.")
    return await _put_session(registry, record, at, link=False)


async def end_session(registry: TenantRegistry, principal: Principal) -> None:
    """End the session that a request came with.

    Raises:
        Forbidden: it came with a key.
    """
    if not principal.session:
        raise Forbidden("This ends a session, and an API key is none: revoke the key.")
    await registry.change_session(principal.session, lambda _: None)


def session_info(registry: TenantRegistry, principal: Principal) -> SessionInfo:
    """What a session's holder is told of it; of a key, what a session of it would be."""
    record = registry.session_nowait(principal.session) if principal.session else None
    return SessionInfo(
        tenant=principal.tenant,
        key=principal.key_id,
        scopes=tuple(sorted(principal.scopes)),
        expires_at=record.expires_at if record is not None else 0.0,
    )


class LoginSessions:
    """Finds whom a session's token is about. `wall` is unix seconds."""

    def __init__(self, registry: IssuerRegistry, *, wall: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._wall = wall
        self._lookups = asyncio.Semaphore(LOOKUPS_AT_A_TIME)

    async def authenticate(self, token: str) -> Principal:
        """The principal of a session's token, by its key's record as that is now.

        Raises:
            Unauthenticated: there is no such session, or it has ended. Its key is looked at by the caller.
        """
        at, name = self._wall(), id_of_token(token)
        record = self._registry.session_nowait(name)
        if record is None:
            async with self._lookups:
                record = await self._registry.session(name)
        if record is None or record.link or not is_open(record, at):
            raise _ended()
        if record.issuer:
            return await self._of_token(record, name, at)
        key = self._registry.key_nowait(record.key) or await self._registry.key(record.key)
        if key is None or not is_alive(key, at) or key.tenant != record.tenant:
            raise Unauthenticated("The session's API key is valid no more: log in again.")
        if at - record.seen_at >= SEEN_EVERY_S:
            await self._note_seen(name, at)
        return Principal(tenant=key.tenant, key_id=key.id, scopes=frozenset(key.scopes), session=name)

    async def _of_token(self, record: SessionRecord, name: str, at: float) -> Principal:
        if not self._holds(record):
            raise Unauthenticated("The record of the session's issuer was changed: log in again.")
        if at - record.seen_at >= SEEN_EVERY_S:
            await self._note_seen(name, at)
        return Principal(tenant=record.tenant, key_id=record.key, scopes=frozenset(record.scopes), session=name)

    def _holds(self, record: SessionRecord) -> bool:
        """Whether the issuer of a session's token is on record as it was."""
        now = next((one for one in self._registry.issuers() if one.name == record.issuer), None)
        return now is not None and now.changed_at == record.issuer_changed_at

    def why_ended(self, principal: Principal) -> Unauthenticated | None:
        """Why a session that was good is so no more; None: it is, as far as the mirror knows."""
        record = self._registry.session_nowait(principal.session)
        if record is None or not is_open(record, self._wall()):
            return _ended()
        return _ended() if record.issuer and not self._holds(record) else None

    def is_of_token(self, principal: Principal) -> bool:
        """Whether no key stands behind a session, but an issuer's token."""
        record = self._registry.session_nowait(principal.session)
        return record is not None and bool(record.issuer)

    async def _note_seen(self, name: str, at: float) -> None:
        def seen(present: SessionRecord | None) -> SessionRecord | None:
            return None if present is None else msgspec.structs.replace(present, seen_at=max(at, present.seen_at))

        with suppress(BusError, PilotlightError):  # a later request notes it
            await self._registry.change_session(name, seen)


def _ended() -> Unauthenticated:
    return Unauthenticated("The session has ended: log in again.")


async def _put_session(registry: TenantRegistry, key: KeyRecord, at: float, *, link: bool) -> NewSession:
    token = ("pl_login_" if link else "pl_session_") + secrets.token_urlsafe(RANDOM_BYTES)
    ends = [at + (CODE_S if link else SESSION_S), *([key.expires_at] if key.expires_at is not None else [])]
    record = SessionRecord(
        id=id_of_token(token), tenant=key.tenant, key=key.id, created_at=at, expires_at=min(ends), seen_at=at, link=link
    )
    await registry.change_session(record.id, lambda _: record)
    told = {"code": token} if link else {"token": token}
    return NewSession(tenant=key.tenant, key=key.id, scopes=key.scopes, expires_at=record.expires_at, **told)


async def _put_token_session(
    registry: TenantRegistry, principal: Principal, origin: TokenOrigin, at: float
) -> NewSession:
    token, scopes = "pl_session_" + secrets.token_urlsafe(RANDOM_BYTES), tuple(sorted(principal.scopes))
    record = SessionRecord(
        id=id_of_token(token), tenant=principal.tenant, key=principal.key_id, created_at=at,
        expires_at=min(at + SESSION_S, origin.ends_at), seen_at=at, issuer=origin.issuer,
        issuer_changed_at=origin.changed_at, scopes=scopes,
    )  # fmt: skip
    await registry.change_session(record.id, lambda _: record)
    return NewSession(
        tenant=principal.tenant, key=principal.key_id, scopes=scopes, expires_at=record.expires_at, token=token
    )


async def _make_room(registry: TenantRegistry, tenant: str, key: str, at: float) -> None:
    """Forget sessions that have ended, whoever's, and of one key and its tenant those that are too many."""
    sessions = list(registry.sessions())
    ended = [one for one in sessions if not is_open(one, at) or not _has_key(registry, one, at)]
    gone = {one.id for one in ended}
    of_tenant = [one for one in sessions if one.tenant == tenant and one.id not in gone]
    of_tenant.sort(key=lambda one: one.seen_at)
    of_key = [one for one in of_tenant if one.key == key]
    surplus = (
        *of_key[: max(0, len(of_key) - SESSIONS_PER_KEY + 1)],
        *of_tenant[: max(0, len(of_tenant) - SESSIONS_PER_TENANT + 1)],
    )
    for name in dict.fromkeys(one.id for one in (*ended[:FORGOTTEN_AT_A_TIME], *surplus)):
        await registry.change_session(name, lambda _: None)


def _has_key(registry: TenantRegistry, session: SessionRecord, at: float) -> bool:
    """As far as the mirror knows: what was revoked is known to be, and a key that is not there may be new."""
    key = registry.key_nowait(session.key)
    return key is None or is_alive(key, at)
