"""Finds whom an issuer's token is about: first what costs nothing, then keys, then the signature, then what it says.

A token of an issuer that is not on record costs the look at its issuer: it is not read, and nothing is fetched for it.
One that was found good is not verified again for REMEMBERED_S, unless its issuer's record or its tenant changes; it
never outlives its end.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import defaultdict
from collections.abc import Callable
from string import hexdigits
from typing import Any, NamedTuple

from pilotlight_core.model.errors import Forbidden, Unauthenticated
from pilotlight_core.model.records.issuers import ISSUER_KEYS, IssuerRecord
from pilotlight_gateway.oidc.issuer_keys import IssuerKeys
from pilotlight_gateway.oidc.signatures import is_signed_by, load_verifier
from pilotlight_gateway.oidc.token_claims import (
    TokenSubject,
    audiences_of,
    check_addressee,
    check_claims,
    still_holds,
    terms_of,
)
from pilotlight_gateway.oidc.token_text import invalid, read_issuer, read_token
from pilotlight_gateway.tenancy.auth import Principal, TokenOrigin
from pilotlight_gateway.tenancy.registry_port import IssuerRegistry

REMEMBERED_S = 300.0
REMEMBERED_AT_MOST = 4_096
GOES_ON_S = 3_600.0
"""How long after a token's end a request goes on that was begun before: a call may take longer than tokens live."""
HOLDER = "oidc-"
"""How the id of whoever has a token begins, which stands where that of an API key does."""
DIGITS = 16
"""Hexadecimal ones of who somebody is at its issuer, in the place of a key's id."""


class _Remembered(NamedTuple):
    record: IssuerRecord
    subject: TokenSubject
    expires_at: float
    """Monotonic seconds."""


class TokenAuthenticator:
    """Checks tokens of the issuers on record. `clock` is monotonic, `wall` unix seconds."""

    def __init__(
        self,
        registry: IssuerRegistry,
        keys: IssuerKeys,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._keys = keys
        self._clock = clock
        self._wall = wall
        self._remembered: dict[bytes, _Remembered] = {}
        self._by_url: dict[str, list[IssuerRecord]] | None = None
        self._by_name: dict[str, IssuerRecord] = {}
        self._loaded = False
        registry.on_change.append(self._changed)

    async def authenticate(self, token: bytes) -> Principal:
        """The principal of a token.

        Raises:
            Unauthenticated: `token_invalid`, or `token_expired`.
            Forbidden: `no_access`: it is good, and nothing on record gives it any.
            Unavailable: `issuer_unavailable`: its issuer's keys cannot be had.
        """
        digest, at = hashlib.sha256(token).digest(), self._clock()
        known = self._remembered.get(digest)
        if known is None or at >= known.expires_at or not self._is_current(known.record):
            record, subject = await self._verified(token)
            known = _Remembered(record, subject, at + REMEMBERED_S)
            self._remember(digest, known)
        if self._wall() >= known.subject.ends_at:
            raise Unauthenticated("The token has expired.", code="token_expired")
        await self._check_tenant(known.subject.tenant)
        return principal_of_token(known.record, known.subject)

    def why_ended(self, principal: Principal) -> Unauthenticated | None:
        """Why a principal that a token stood for is valid no more; None: it is, or what it has begun may go on."""
        origin, tenant = principal.origin, self._registry.tenant_nowait(principal.tenant)
        if origin is None or (record := self._named().get(origin.issuer)) is None or record.url != origin.url:
            return invalid("is of an issuer that was removed")
        if origin.changed_at != record.changed_at and not still_holds(record, _subject_of(principal), origin.terms):
            return invalid("gave more than its issuer's record does now: send the request again")
        if self._wall() >= origin.ends_at + GOES_ON_S:
            return Unauthenticated("The token has expired.", code="token_expired")
        if tenant is None or tenant.disabled:
            return Unauthenticated("The token's tenant is disabled.")
        return None

    async def _verified(self, text: bytes) -> tuple[IssuerRecord, TokenSubject]:
        if not self._named():
            raise invalid("is of an issuer that is not on record: none is")
        url = read_issuer(text)
        records = (self._by_url or {}).get(url, [])
        if not records:
            raise invalid(f"is of an issuer that is not on record: {url!r:.200}")
        token = read_token(text)
        audiences = audiences_of(token.claims)
        record = next((one for one in records if one.audience in audiences), records[0])
        if token.algorithm not in record.algorithms:
            raise invalid(
                f"is signed by the algorithm {token.algorithm!r:.40}, which its issuer's record does not allow"
            )
        check_addressee(record, token.claims, self._wall())  # before anything is fetched: most that is refused is old
        keys = await self._keys.find(record, token.algorithm, token.key_name)
        if not keys:
            raise invalid("is signed with a key that its issuer does not show")
        if not self._loaded:
            await asyncio.to_thread(load_verifier)
            self._loaded = True
        if not any(is_signed_by(token, key) for key in keys):
            raise invalid("is not signed by its issuer")
        if not self._is_current(record):  # it was changed while its keys were fetched
            raise invalid("is of an issuer whose record was changed: send the request again")
        return record, check_claims(record, token.claims, self._wall())

    def _is_current(self, record: IssuerRecord) -> bool:
        return self._named().get(record.name) == record

    def _named(self) -> dict[str, IssuerRecord]:
        if self._by_url is None:
            self._by_name = {record.name: record for record in self._registry.issuers()}
            by_url = defaultdict(list)
            for _, record in sorted(self._by_name.items()):
                by_url[record.url].append(record)
            self._by_url = dict(by_url)
        return self._by_name

    def _changed(self, key: str, _record: Any) -> None:
        if key.startswith(ISSUER_KEYS):
            self._by_url = None
            self._remembered.clear()
            self._keys.wake()

    async def _check_tenant(self, name: str) -> None:
        tenant = self._registry.tenant_nowait(name) or await self._registry.tenant(name)
        if tenant is None:
            raise Forbidden(f"The token is of the tenant {name}, which there is not.", code="no_access")
        if tenant.disabled:
            raise Unauthenticated("The token's tenant is disabled.")

    def _remember(self, digest: bytes, known: _Remembered) -> None:
        self._remembered.pop(digest, None)
        if len(self._remembered) >= REMEMBERED_AT_MOST:
            self._remembered.pop(next(iter(self._remembered)))
        self._remembered[digest] = known


def is_holder_of(record: IssuerRecord, name: str) -> bool:
    """Whether a name is such as the issuer's holders of tokens have in the place of a key's id."""
    who = name.removeprefix(f"{HOLDER}{record.name}-")
    return who != name and len(who) == DIGITS and set(who) <= set(hexdigits.lower())


def principal_of_token(record: IssuerRecord, subject: TokenSubject) -> Principal:
    """Who has a verified token: the same in each of theirs, by a name that no subject can choose."""
    who = hashlib.sha256(f"{record.url}\n{subject.subject}".encode()).hexdigest()[:DIGITS]
    return Principal(
        tenant=subject.tenant,
        key_id=f"{HOLDER}{record.name}-{who}",
        scopes=subject.scopes,
        origin=TokenOrigin(
            issuer=record.name, url=record.url, subject=subject.subject, ends_at=subject.ends_at,
            changed_at=record.changed_at, terms=terms_of(record), groups=subject.groups,
            tenant_values=subject.tenant_values,
        ),
    )  # fmt: skip


def _subject_of(principal: Principal) -> TokenSubject:
    assert principal.origin is not None  # noqa: S101 - it had a token
    origin = principal.origin
    return TokenSubject(
        origin.subject, principal.tenant, principal.scopes, origin.ends_at, origin.groups, origin.tenant_values
    )
