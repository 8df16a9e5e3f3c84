"""Keys of tenants on record, by which they sign code and artifacts."""

from __future__ import annotations

from msgspec.structs import replace

from pilotlight_core.host.supply.tenant_signatures import plain_pem
from pilotlight_core.host.supply.trust_keys import TrustStore
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.supply.key_terms import KeyTerms
from pilotlight_core.model.supply.trust_records import MOST_TRUSTED, TrustedKey, TrustRecord


async def add_trusted_key(
    store: TrustStore, tenant: str, name: str, pem: str, terms: KeyTerms, *, by: str, at: float
) -> TrustedKey:
    """Put a public key on record; the same again changes its terms.

    Raises:
        BadInput: it is no key of P-256. Conflict: the name, or the key, is another's, or was revoked; or there are too
            many.
    """
    check_name(name, "key")
    try:
        key = TrustedKey(name=name, pem=plain_pem(pem), added_at=at, added_by=by, terms=terms)
    except ValueError as error:
        raise BadInput(f"pem: {error}.", field="pem") from None

    def change(present: TrustRecord) -> TrustRecord:
        for each in present.keys:
            if (each.name == name) != (each.pem == key.pem):
                what = (
                    f"the name {name} is of the key {each.id}"
                    if each.name == name
                    else f"the key is there as {each.name}"
                )
                raise Conflict(f"Nothing was changed: {what}.")
            if each.name == name and each.terms.revoked_at:
                raise Conflict(f"Nothing was changed: the key {name} {each.terms.fault(at)}.")
        others = tuple(each for each in present.keys if each.name != name)
        if len(others) >= MOST_TRUSTED:
            raise Conflict(f"A tenant has {MOST_TRUSTED} keys at most, revoked ones among them.")
        return replace(present, keys=(*others, key))

    await store.change(tenant, change)
    return key


async def revoke_trusted_key(store: TrustStore, tenant: str, name: str, reason: str, *, at: float) -> TrustedKey:
    """What the key has signed counts no more, from the next deploy and the next start of a container on.

    Raises:
        NotFound.
    """
    found: list[TrustedKey] = []

    def change(present: TrustRecord) -> TrustRecord:
        found[:] = [each for each in present.keys if each.name == name]
        if not found:
            known = ", ".join(each.name for each in present.keys) or "none"
            raise NotFound(f"There is no key {name} on record; there is {known}.")
        if not found[0].terms.revoked_at:
            found[0] = replace(found[0], terms=replace(found[0].terms, revoked_at=at, reason=reason))
        return replace(present, keys=tuple(found[0] if each.name == name else each for each in present.keys))

    await store.change(tenant, change)
    return found[0]
