"""The versions that a deploy makes. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec
from msgspec import UNSET

from pilotlight_core.host.supply.tenant_signatures import CODE
from pilotlight_core.model.api.call_api import DeployRequest
from pilotlight_core.model.artifacts.evidence_info import EvidenceInfo
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.packages.package_locks import PackageLock, environment_id
from pilotlight_core.model.spec import (
    AppRecord,
    ArtifactEntry,
    FunctionSpec,
    Manifest,
    SignedManifest,
    VersionRecord,
)
from pilotlight_core.model.versions.artifacts import artifact_info
from pilotlight_core.model.versions.manifest_codec import EVIDENCE, needs_of
from pilotlight_core.model.versions.secret_names import secret_names
from pilotlight_gateway.deploys.weights_pins import Pins

SCHEMA_BYTES_IN_RECORD = 4_096
"""JSON bytes of a version's schemas up to which they are in its record, and no call waits for the blob store."""

EXAMPLE_BYTES_IN_RECORD = 4_096
"""Bytes of a version's examples up to which they are in its record; nobody but its containers needs them."""


def secret_warnings(specs: Iterable[FunctionSpec]) -> tuple[str, ...]:
    """What a deployer should know of variables that look like secrets, a line for each function with some."""
    found = ((spec.name, secret_names(spec.env)) for spec in specs)
    return tuple(
        f"{name}: env {', '.join(names)} looks like a secret. It is stored in plain text with the version, as long as "
        "that is kept; lists do not show it. Set it with 'pilotlight secret set', and name it in secrets=."
        for name, names in found
        if names
    )


def manifests_of(
    tenant: str,
    app: str,
    request: DeployRequest,
    pins: Pins | None = None,
    lock: PackageLock | None = None,
    signed: Mapping[str, Collection[str]] | None = None,
    *,
    documented: bool = False,
) -> list[Manifest]:
    """The manifest of each function. The order of files and of artifacts does not matter.

    Args:
        pins: the weights of each function.
        signed: by function, what the tenant has signed of it.
        documented: whether each has to have its documents, also if nothing is signed.
    """
    pinned, names = pins or {}, signed or {}
    files = tuple(sorted(request.files, key=lambda entry: entry.path))
    artifacts = [_with_parts_sorted(artifact) for artifact in request.artifacts]
    manifests = [
        Manifest(
            tenant=tenant,
            app=app,
            function=function.spec.name,
            spec=function.spec,
            files=files,
            base=request.base,
            artifacts=_sorted(
                (*(one for one in artifacts if one.name in function.artifacts), *pinned.get(function.spec.name, ()))
            ),
            lock=lock,
            signed=tuple(sorted(names.get(function.spec.name, ()))),
        )
        for function in request.functions
    ]
    return [msgspec.structs.replace(one, needs=_needs(one, documented=documented)) for one in manifests]


def _needs(manifest: Manifest, *, documented: bool) -> tuple[str, ...]:
    needs = {*needs_of(manifest.spec, manifest.artifacts, manifest.lock)}
    if documented or manifest.signed:
        needs.add(EVIDENCE)  # no agent runs it without, so that nobody takes documents or a signature off it
    return tuple(sorted(needs))


def signatures_of(
    request: DeployRequest, pins: Pins | None = None, pushed: Mapping[str, Mapping[str, bytes]] | None = None
) -> dict[str, dict[str, bytes]]:
    """By function, what the tenant has signed of it: with the deploy, else when its weights were pushed (`pushed`).

    Raises:
        BadInput: a name stands twice, or is none of what is deployed.
    """
    given = {each.of: each.bundle.encode() for each in request.signatures}
    if len(given) < len(request.signatures):
        raise BadInput("signatures: what is signed stands twice: name each once.", field="signatures")
    names = {
        one.spec.name: {CODE, *one.artifacts, *(entry.name for entry in (pins or {}).get(one.spec.name, ()))}
        for one in request.functions
    }
    if unknown := sorted(set(given) - set[str]().union(*names.values())):
        known = ", ".join(sorted(set[str]().union(*names.values())))
        raise BadInput(f"signatures: {unknown[0]!r} is none of what is deployed: {known}.", field="signatures")
    return {
        function: {**(pushed or {}).get(function, {}), **{of: text for of, text in given.items() if of in own}}
        for function, own in names.items()
    }


def _sorted(artifacts: Iterable[ArtifactEntry]) -> tuple[ArtifactEntry, ...]:
    return tuple(sorted(artifacts, key=lambda artifact: artifact.name))


def _with_parts_sorted(artifact: ArtifactEntry) -> ArtifactEntry:
    """By path; the parts of one file keep their order."""
    return msgspec.structs.replace(artifact, parts=tuple(sorted(artifact.parts, key=lambda part: part.path)))


def without_floors(request: DeployRequest) -> DeployRequest:
    """The deploy of a run: nothing is kept ready for what one command calls."""
    return msgspec.structs.replace(
        request,
        functions=tuple(
            msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, min_containers=0, warm=UNSET))
            for one in request.functions
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Build:
    """A manifest that is signed and stored. It has its id, which is slow to compute."""

    manifest: Manifest
    version_id: str
    signed_sha256: str
    """The blob of the signed manifest."""
    evidence: EvidenceInfo
    at: float
    """The unix second at which it is registered, which its documents have too."""


def version_record(build: Build, app: AppRecord | None) -> VersionRecord:
    """The registry's record of a build, deployed when the app was `app`."""
    manifest = build.manifest
    spec, apart = _spec_of_record(manifest.spec)
    return VersionRecord(
        id=build.version_id,
        tenant=manifest.tenant,
        app=manifest.app,
        function=manifest.function,
        number=_number_of(app, manifest.function, build.version_id),
        manifest_sha256=build.signed_sha256,
        spec=spec,
        schemas_apart=apart,
        bundle_bytes=sum(entry.size for entry in manifest.files),
        created_at=build.at,
        artifacts=tuple(map(artifact_info, manifest.artifacts)),
        base=manifest.base,
        needs=manifest.needs,
        environment=environment_of(manifest),
        evidence=build.evidence,
    )


def environment_of(manifest: Manifest) -> str:
    """What nodes call the environment that they build for it; "": it needs none."""
    lock = manifest.lock
    return environment_id(manifest.tenant, lock) if lock is not None and lock.packages else ""


def _spec_of_record(spec: FunctionSpec) -> tuple[FunctionSpec, bool]:
    """The spec for the registry, which every process has in memory, and whether schemas were left out of it."""
    if spec.rehearsal is not UNSET and spec.rehearsal.example_bytes > EXAMPLE_BYTES_IN_RECORD:
        spec = msgspec.structs.replace(spec, rehearsal=UNSET)  # agents have it from the manifest
    schemas = [(method.input_schema, method.output_schema) for method in spec.methods]
    if len(msgspec.json.encode(schemas)) <= SCHEMA_BYTES_IN_RECORD:
        return spec, False
    bare = tuple(msgspec.structs.replace(method, input_schema={}, output_schema={}) for method in spec.methods)
    return msgspec.structs.replace(spec, methods=bare), True


def _number_of(record: AppRecord | None, function: str, version_id: str) -> int:
    """The version's number, or the one that it would get."""
    if record is None:
        return 1
    return record.number_of(function, version_id) or record.newest_number(function) + 1


def signed_blob(signed: SignedManifest) -> tuple[str, bytes]:
    """A signed manifest as a blob: its digest and its bytes."""
    data = msgspec.msgpack.encode(signed)
    return hashlib.sha256(data).hexdigest(), data
