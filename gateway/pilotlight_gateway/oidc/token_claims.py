"""What a token says, by the record of its issuer: for whom and until when it is, whose tenant's, and what it may. Pure.

Whatever the record does not name is nothing: a token without a tenant, or without a scope, gives no access.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pilotlight_core.model.errors import Forbidden, Unauthenticated
from pilotlight_core.model.ids import NAME
from pilotlight_core.model.records.issuers import EVERYTHING, IssuerRecord
from pilotlight_gateway.oidc.token_text import invalid

LONGEST_SUBJECT = 255
MOST_AUDIENCES = 50
LONGEST_VALUE = 256
"""Characters of a value that may be on record."""
MOST_TENANT_VALUES = 32
SPACED = ("scope", "scp")
"""Claims whose string is a list with spaces between (RFC 8693)."""


class TokenSubject(NamedTuple):
    """Whom a token is about, and what it may."""

    subject: str
    tenant: str
    scopes: frozenset[str]
    ends_at: float
    """The unix second from which on nobody takes it."""
    groups: tuple[str, ...] = ()
    """Those on record: of others nothing is kept."""
    tenant_values: tuple[str, ...] = ()
    """Of the claim that says the tenant, if one does."""


def audiences_of(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """Whom it is for.

    Raises:
        Unauthenticated: `token_invalid`: it does not say so, or for too many.
    """
    found = claims.get("aud")
    several = [found] if isinstance(found, str) else found
    if not isinstance(several, list) or not all(isinstance(one, str) for one in several):
        raise invalid("does not say whom it is for (aud)")
    if len(several) > MOST_AUDIENCES:
        raise invalid(f"is for more than {MOST_AUDIENCES} audiences")
    return tuple(several)


def check_addressee(record: IssuerRecord, claims: Mapping[str, Any], at: float) -> float:
    """Until which unix second the token is good, if it is for this platform, of that issuer, and good at all at `at`.

    All that may be said of a token whose signature is not verified: what else is on record is not for anybody to find
    out, nor is its audience.

    Raises:
        Unauthenticated: `token_expired`, or `token_invalid`.
    """
    ends_at = _check_times(record, claims, at)
    if claims.get("iss") != record.url:
        raise invalid("is of another issuer")
    if record.audience not in audiences_of(claims):
        raise invalid("is not for this platform, by its audience (aud)")
    return ends_at


def check_claims(record: IssuerRecord, claims: Mapping[str, Any], at: float) -> TokenSubject:
    """Whom a verified token of that issuer is about, at the unix second `at`.

    Raises:
        Unauthenticated: `token_expired`, or `token_invalid`.
        Forbidden: `no_access`: nothing on record gives it any.
    """
    ends_at, audiences = check_addressee(record, claims, at), audiences_of(claims)
    if record.takes_id_tokens and (len(audiences) > 1 or "azp" in claims) and claims.get("azp") != record.client_id:
        raise invalid("was made for another program (azp)")
    if "cnf" in claims:  # whoever holds it has to prove more (RFC 7800): DPoP, or a certificate
        raise invalid("is bound to a key (cnf), and so is no bearer's")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT or not subject.isprintable():
        raise invalid("does not say whom it is about (sub)")
    said = frozenset(values_of(claims, record.groups_claim))
    groups = tuple(group for group in record.groups if group in said)
    tenant_values = values_of(claims, record.tenant_claim) if record.tenant_claim else ()
    if len(tenant_values) > MOST_TENANT_VALUES:
        raise _no_access(f"its claim {record.tenant_claim} has more than {MOST_TENANT_VALUES} values")
    scopes = scopes_of(record, groups)
    if not scopes:
        raise _no_access(f"none of the groups in {record.groups_claim} has any scope here")
    return TokenSubject(subject, tenant_of(record, tenant_values), scopes, ends_at, groups, tenant_values)


def tenant_of(record: IssuerRecord, values: Sequence[str]) -> str:
    """The tenant that a token with these values of the tenant's claim stands for.

    Raises:
        Forbidden: `no_access`: none, or several.
    """
    if record.tenant:
        return record.tenant
    found = {record.tenants[value] for value in values if value in record.tenants and value != EVERYTHING}
    if not found and values and (other := record.tenants.get(EVERYTHING)) is not None:
        found = set(values) if other == EVERYTHING or len(set(values)) > 1 else {other}
    if len(found) != 1 or not NAME.fullmatch(next(iter(found))):
        what = "stands for several tenants" if len(found) > 1 else "stands for no tenant"
        raise _no_access(f"its claim {record.tenant_claim} {what}")
    return found.pop()


def scopes_of(record: IssuerRecord, groups: Iterable[str]) -> frozenset[str]:
    """What the groups of a token may; those of `*` are for everybody with a tenant."""
    return frozenset(scope for group in (*groups, EVERYTHING) for scope in record.groups.get(group, ()))


def terms_of(record: IssuerRecord) -> tuple[object, ...]:
    """By what its tokens are verified and read: what is on record beside whose they are and what they may."""
    return (
        record.url, record.jwks_url, record.algorithms, record.audience, record.client_id, record.tenant_claim,
        record.groups_claim,
    )  # fmt: skip


def still_holds(record: IssuerRecord, subject: TokenSubject, terms: tuple[object, ...]) -> bool:
    """Whether the changed record lets somebody do all that was let before, under the `terms` of then."""
    try:
        tenant = tenant_of(record, subject.tenant_values)
    except Forbidden:
        return False
    return (
        terms_of(record) == terms and tenant == subject.tenant and subject.scopes <= scopes_of(record, subject.groups)
    )


def values_of(claims: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """The strings of a claim, by its name or the dotted path to it; (): it is not there, or of another kind."""
    found: Any = claims.get(path)
    if found is None:
        found = claims
        for part in path.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        found = found.split() if path in SPACED else [found]
    # What a token calls `*` is no name for everybody.
    several = found if isinstance(found, list) else []
    return tuple(one for one in several if isinstance(one, str) and one != EVERYTHING and len(one) <= LONGEST_VALUE)


def _check_times(record: IssuerRecord, claims: Mapping[str, Any], at: float) -> float:
    expires, begins, issued = (_instant(claims, name) for name in ("exp", "nbf", "iat"))
    if expires is None:
        raise invalid("does not say until when it is valid (exp)")
    if at >= expires + record.leeway_s:
        raise Unauthenticated("The token has expired.", code="token_expired")
    if (begins is not None and at + record.leeway_s < begins) or (issued is not None and at + record.leeway_s < issued):
        raise invalid("is not valid yet, by the platform's clock")
    return expires + record.leeway_s


def _instant(claims: Mapping[str, Any], name: str) -> float | None:
    found = claims.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        raise invalid(f"has a time that is none ({name})")
    return float(found)


def _no_access(why: str) -> Forbidden:
    return Forbidden(f"The token is valid, and gives no access: {why}.", code="no_access")
