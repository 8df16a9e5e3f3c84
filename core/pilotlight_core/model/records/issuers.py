"""What the platform has on record of an OpenID issuer: whose tokens are taken, and what their claims stand for."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

import msgspec

from pilotlight_core.model.api.issuer_api import LEEWAY_S, STALE_OK_S, USUAL_ALGORITHMS

ISSUER_KEYS = "issuer."
"""In front of its name: the key of an issuer's record in the registry."""
ISSUERS_AT_MOST = 32
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""All that a record may allow: whoever verifies by one of them cannot sign by it."""
EVERYTHING = "*"
"""As a value of a claim: whichever it is. As the tenant that such a value stands for: the value itself."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class IssuerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Key: `issuer.{name}`."""

    name: str
    url: str
    """As its tokens name it (`iss`)."""
    audience: str
    """What its tokens have to be for (`aud`)."""
    jwks_url: str
    """Where its public keys are. On record, so that nothing that an issuer says later chooses what is fetched."""
    client_id: str = ""
    """Under which people log in; "": nobody does, and only programs have tokens."""
    algorithms: tuple[str, ...] = USUAL_ALGORITHMS
    tenant: str = ""
    """Whose all of its tokens are; "": `tenant_claim` says."""
    tenant_claim: str = ""
    tenants: dict[str, str] = {}
    """The value of that claim -> the tenant."""
    groups_claim: str = "groups"
    groups: dict[str, tuple[str, ...]] = {}
    """A group -> the scopes of who is in it."""
    leeway_s: float = LEEWAY_S
    """How far its clock may be from the platform's."""
    stale_ok_s: float = STALE_OK_S
    """How old its keys may become while they cannot be fetched."""
    login_scope: str = "openid offline_access"
    """What `pilotlight login` asks it for."""
    login_parameters: dict[str, str] = {}
    """What `pilotlight login` says beyond the standard, such as the `resource` or `audience` of tokens."""
    changed_at: float = 0.0

    @property
    def takes_id_tokens(self) -> bool:
        """Whether people are known by tokens that are for their client, which no other program should send."""
        return bool(self.client_id) and self.audience == self.client_id


def url_fault(url: str) -> str:
    """Why the platform asks nothing at this address; "": it may."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "it is no address"
    if not host or parts.username is not None or parts.fragment:
        return "it is no https:// address"
    if parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK):
        return ""
    return "it is neither https:// nor on loopback"


def named_url_fault(url: str, issuer: str) -> str:
    """Why the platform asks nothing at this address that the issuer's own document names; "": it may.

    One on another machine names nothing on this one.
    """
    if fault := url_fault(url):
        return fault
    here = urlsplit(url).hostname in LOOPBACK and urlsplit(issuer).hostname not in LOOPBACK
    return "it is on loopback, and its issuer is not" if here else ""


def issuer_fault(record: IssuerRecord) -> str:
    """Why the record cannot hold, beginning with the field; "": it can."""
    for field, url in (("url", record.url), ("jwks_url", record.jwks_url)):
        if fault := url_fault(url):
            return f"{field}: {fault}"
    if urlsplit(record.url).query:
        return "url: an issuer has no query"
    if odd := _others(record.algorithms, ALGORITHMS):
        return f"algorithms: {odd} is not allowed: expected of {', '.join(ALGORITHMS)}"
    if bool(record.tenant) == bool(record.tenant_claim):
        return "tenant: expected a tenant, or the claim that says which"
    if bool(record.tenants) != bool(record.tenant_claim):
        return "tenants: expected which values of the tenant_claim stand for which tenants"
    if any(tenant == EVERYTHING and value != EVERYTHING for value, tenant in record.tenants.items()):
        return f"tenants: only {EVERYTHING} may stand for {EVERYTHING}"
    return ""


def _others(found: Iterable[str], allowed: tuple[str, ...]) -> str:
    return next((one for one in found if one not in allowed), "")
