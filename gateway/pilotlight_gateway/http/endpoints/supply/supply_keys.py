"""Keys by which tenants sign what they deploy, and the platform's own set of keys."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.host.key_sets import SignedKeySet
from pilotlight_core.host.signing import key_id
from pilotlight_core.host.supply.trust_keys import TrustStore
from pilotlight_core.model.api.supply.supply_api import (
    ResignedVersions,
    ResignRequest,
    RevokeRequest,
    SigningKeyInfo,
    SigningKeysInfo,
    TrustedKeyInfo,
    TrustedKeyList,
    TrustedKeyRequest,
)
from pilotlight_core.model.errors import BadInput, Conflict
from pilotlight_core.model.supply.key_terms import ALWAYS, KeyTerms
from pilotlight_core.model.supply.trust_records import TrustedKey
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.http.protocol.api_operations import (
    BODY,
    Operation,
    json_answer,
    principal_of,
    read_struct,
)
from pilotlight_gateway.supply.key_set_book import KeySetStore, VersionSigner, publish_key_set
from pilotlight_gateway.supply.signing_keys import ManifestSigner
from pilotlight_gateway.supply.trust_book import add_trusted_key, revoke_trusted_key


@dataclass(frozen=True, kw_only=True)
class SupplyKeyServices:
    """The ports of these endpoints. `wall` is unix seconds."""

    trust: TrustStore
    key_sets: KeySetStore
    signer: ManifestSigner
    versions: VersionSigner
    budget: ByteBudget
    wall: Callable[[], float] = time.time


async def list_trusted(request: Request, services: SupplyKeyServices) -> Response:
    """`GET /v1/trusted-keys`."""
    record, at = await services.trust.read(principal_of(request).tenant), services.wall()
    keys = tuple(_trusted_info(each, at) for each in (record.keys if record else ()))
    return json_answer(TrustedKeyList(keys=keys))


async def put_trusted(request: Request, services: SupplyKeyServices) -> Response:
    """`PUT /v1/trusted-keys/{name}`."""
    asked = await read_struct(request, services.budget, TrustedKeyRequest)
    principal, at = principal_of(request), services.wall()
    if asked.not_after and asked.not_after <= max(asked.not_before, at):
        raise BadInput("not_after: expected an instant that is to come, behind not_before.", field="not_after")
    terms = KeyTerms(not_before=asked.not_before, not_after=asked.not_after)
    key = await add_trusted_key(
        services.trust, principal.tenant, request.path_params["name"], asked.pem, terms, by=principal.key_id, at=at
    )
    return json_answer(_trusted_info(key, at))


async def revoke_trusted(request: Request, services: SupplyKeyServices) -> Response:
    """`POST /v1/trusted-keys/{name}/revoke`."""
    asked = await read_struct(request, services.budget, RevokeRequest)
    tenant, at = principal_of(request).tenant, services.wall()
    key = await revoke_trusted_key(services.trust, tenant, request.path_params["name"], asked.reason, at=at)
    return json_answer(_trusted_info(key, at))


async def show_signing(_: Request, services: SupplyKeyServices) -> Response:
    """`GET /v1/signing-keys`."""
    return json_answer(await _signing_info(services))


async def put_signing(request: Request, services: SupplyKeyServices) -> Response:
    """`PUT /v1/signing-keys`."""
    offered = await read_struct(request, services.budget, SignedKeySet)
    await publish_key_set(services.key_sets, offered)
    return json_answer(await _signing_info(services))


async def resign(request: Request, services: SupplyKeyServices) -> Response:
    """`POST /v1/signing-keys/resign`: some of the kept versions."""
    asked = await read_struct(request, services.budget, ResignRequest)
    present = await services.key_sets.read()
    if present is None:
        raise Conflict("The platform has one key and no set of keys: nothing is to be signed again.")
    at = services.wall()
    return json_answer(await services.versions.sign_again(present.check(), asked.after, asked.most, at))


async def _signing_info(services: SupplyKeyServices) -> SigningKeysInfo:
    at, present = services.wall(), await services.key_sets.read()
    current = (await services.signer.sign_statement(b"")).key_id
    if present is None:
        return SigningKeysInfo(serial=0, operator="", keys=(SigningKeyInfo(id=current, signs_here=True),))
    found = present.read()
    names = dict.fromkeys((*found.names(), *(key_id(each.key) for each in found.terms)))
    keys = tuple(_signing_key(name, found.terms_of(name) or ALWAYS, at, current) for name in names)
    return SigningKeysInfo(serial=found.serial, operator=key_id(present.root), keys=keys)


def _signing_key(name: str, terms: KeyTerms, at: float, current: str) -> SigningKeyInfo:
    why = terms.fault(at)
    return SigningKeyInfo(
        id=name, not_before=terms.not_before, not_after=terms.not_after, revoked_at=terms.revoked_at,
        reason=terms.reason, counts=not why, why=why, signs_here=name == current,
    )  # fmt: skip


def _trusted_info(key: TrustedKey, at: float) -> TrustedKeyInfo:
    why, terms = key.terms.fault(at), msgspec.structs.asdict(key.terms)
    return TrustedKeyInfo(
        name=key.name, id=key.id, pem=key.pem, added_at=key.added_at, added_by=key.added_by, counts=not why, why=why,
        **terms,
    )  # fmt: skip


SUPPLY_KEYS = (
    Operation(
        method="GET", path="/v1/trusted-keys", name="listTrustedKeys", endpoint=list_trusted,
        about="The keys by which the tenant signs what it deploys.", scopes=("read", "deploy"),
        answer=TrustedKeyList,
    ),
    Operation(
        method="PUT", path="/v1/trusted-keys/{name}", name="setTrustedKey", endpoint=put_trusted, scopes=("admin",),
        about="Put a public key on record, or change its terms.", tells=("*",), request=TrustedKeyRequest,
        answer=TrustedKeyInfo, errors=(*BODY, "conflict"),
    ),
    Operation(
        method="POST", path="/v1/trusted-keys/{name}/revoke", name="revokeTrustedKey", endpoint=revoke_trusted,
        about="Let what a key has signed count no more.", scopes=("admin",), tells=("*",), request=RevokeRequest,
        answer=TrustedKeyInfo, errors=(*BODY, "not_found", "conflict"),
    ),
    Operation(
        method="GET", path="/v1/signing-keys", name="getSigningKeys", endpoint=show_signing, scopes=("operator",),
        about="The platform's own keys, and when each counts.", answer=SigningKeysInfo, errors=("starting",),
    ),
    Operation(
        method="PUT", path="/v1/signing-keys", name="setSigningKeys", endpoint=put_signing, scopes=("operator",),
        about="Publish a set of keys that the operator's key vouches for.", request=SignedKeySet,
        answer=SigningKeysInfo, errors=(*BODY, "conflict", "starting"),
    ),
    Operation(
        method="POST", path="/v1/signing-keys/resign", name="resignVersions", endpoint=resign, scopes=("operator",),
        about="Sign kept versions again by the present key, some at a time.", request=ResignRequest,
        answer=ResignedVersions, errors=(*BODY, "conflict", "starting"),
    ),
)  # fmt: skip
