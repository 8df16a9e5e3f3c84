"""Documents about a version: its bill of materials, its provenance, and what policies say of it now."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.host.blobs import BlobMissing, BlobStore
from pilotlight_core.model.api.supply.supply_api import VerdictInfo
from pilotlight_core.model.artifacts.evidence_info import EvidenceInfo
from pilotlight_core.model.errors import NotFound, UnknownFunction
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.http.protocol.api_operations import Operation, json_answer, principal_of
from pilotlight_gateway.supply.policy_rules import age_warning
from pilotlight_gateway.supply.supply_desk import SupplyDesk

SBOM_TYPE = "application/vnd.cyclonedx+json"
STATEMENT_TYPE = "application/vnd.in-toto+json"
OBJECT: dict[str, Any] = {"type": "object"}
READ = ("read", "deploy")


@dataclass(frozen=True, kw_only=True)
class VersionDocumentServices:
    """The ports of these endpoints. `wall` is unix seconds."""

    resolver: Resolver
    blobs: BlobStore
    desk: SupplyDesk
    wall: Callable[[], float] = time.time


async def show_sbom(request: Request, services: VersionDocumentServices) -> Response:
    """`GET /v1/functions/{ref}/sbom`."""
    version = await _own(request, services)
    return Response(await _read(services, version, _evidence(version).sbom), media_type=SBOM_TYPE)


async def show_provenance(request: Request, services: VersionDocumentServices) -> Response:
    """`GET /v1/functions/{ref}/provenance`: an envelope, whose signature is the platform's."""
    version = await _own(request, services)
    return Response(await _read(services, version, _evidence(version).statement), media_type=STATEMENT_TYPE)


async def show_verdict(request: Request, services: VersionDocumentServices) -> Response:
    """`GET /v1/functions/{ref}/verdict`: policies and vulnerabilities as they are now."""
    version, at = await _own(request, services), services.wall()
    try:
        review = await services.desk.judged(version, at)
    except BlobMissing:
        raise NotFound(f"The manifest of {version.ref} is not stored any more.") from None
    said, warning = review.verdict, age_warning(review.facts)
    return json_answer(
        VerdictInfo(
            version=version.ref, version_id=version.id, at=said.at, allowed=not said.refused,
            findings=tuple(msgspec.to_builtins(each) for each in said.findings), more=said.more,
            data_published_at=None if said.data is None else said.data.published_at,
            data_age_s=None if said.data is None else said.data.age_s,
            policies=said.policies, warnings=(warning,) if warning else (),
        )
    )  # fmt: skip


async def _own(request: Request, services: VersionDocumentServices) -> VersionRecord:
    """A version of the tenant's own: what code is made of is nobody else's to know."""
    tenant, ref = principal_of(request).tenant, request.path_params["ref"]
    version = await services.resolver.resolve(tenant, ref)
    if version.tenant != tenant:
        raise UnknownFunction(f"{ref} is another tenant's: its owner knows what it is made of.")
    return version


def _evidence(version: VersionRecord) -> EvidenceInfo:
    if version.evidence is None:
        raise NotFound(f"{version.ref} was registered before there were documents about versions: deploy it again.")
    return version.evidence


async def _read(services: VersionDocumentServices, version: VersionRecord, sha256: str) -> bytes:
    try:
        data = await services.blobs.read(version.tenant, sha256)
    except BlobMissing:
        raise NotFound(f"The document of {version.ref} is not stored any more: deploy it again.") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise NotFound(f"The document of {version.ref} is damaged in the blob store: deploy it again.")
    return data


VERSION_DOCUMENTS = (
    Operation(
        method="GET", path="/v1/functions/{ref}/sbom", name="getSbom", endpoint=show_sbom, scopes=READ,
        about="A version's bill of materials, in CycloneDX 1.6.", answer=OBJECT, answer_media=(SBOM_TYPE,),
        errors=("bad_input", "not_found", "unknown_function", "unknown_version"),
    ),
    Operation(
        method="GET", path="/v1/functions/{ref}/provenance", name="getProvenance", endpoint=show_provenance,
        about="What a version was built of, as an in-toto statement in a DSSE envelope.", scopes=READ, answer=OBJECT,
        answer_media=(STATEMENT_TYPE,), errors=("bad_input", "not_found", "unknown_function", "unknown_version"),
    ),
    Operation(
        method="GET", path="/v1/functions/{ref}/verdict", name="getVerdict", endpoint=show_verdict, scopes=READ,
        about="What policies say of a version now.", answer=VerdictInfo,
        errors=("bad_input", "not_found", "unknown_function", "unknown_version", "starting"),
    ),
)  # fmt: skip
