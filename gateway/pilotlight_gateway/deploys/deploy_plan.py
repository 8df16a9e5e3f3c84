"""The versions that a deploy makes. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from pilotlight_core.model.api.call_api import DeployRequest
from pilotlight_core.model.secret_names import secret_names
from pilotlight_core.model.spec import (
    AppRecord,
    FunctionSpec,
    Manifest,
    SignedManifest,
    VersionRecord,
)


def secret_warnings(specs: Iterable[FunctionSpec]) -> tuple[str, ...]:
    """What a deployer should know of variables that look like secrets, a line for each function with some."""
    found = ((spec.name, secret_names(spec.env)) for spec in specs)
    return tuple(
        f"{name}: env {', '.join(names)} looks like a secret. It is stored in plain text with the version, as long as "
        "that is kept; lists do not show it. There are no secrets= yet."
        for name, names in found
        if names
    )


def manifests_of(tenant: str, app: str, request: DeployRequest) -> list[Manifest]:
    """The manifest of each function. The order of the files does not matter."""
    files = tuple(sorted(request.files, key=lambda entry: entry.path))
    return [
        Manifest(
            tenant=tenant, app=app, function=function.spec.name, spec=function.spec, files=files, base=request.base
        )
        for function in request.functions
    ]


def without_floors(request: DeployRequest) -> DeployRequest:
    """The deploy of a run: nothing is kept ready for what one command calls."""
    return msgspec.structs.replace(
        request,
        functions=tuple(
            msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, min_containers=0))
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


def version_record(build: Build, app: AppRecord | None, at: float) -> VersionRecord:
    """The registry's record of a build, deployed at the unix second `at` when the app was `app`."""
    manifest = build.manifest
    return VersionRecord(
        id=build.version_id,
        tenant=manifest.tenant,
        app=manifest.app,
        function=manifest.function,
        number=_number_of(app, manifest.function, build.version_id),
        manifest_sha256=build.signed_sha256,
        spec=manifest.spec,
        bundle_bytes=sum(entry.size for entry in manifest.files),
        created_at=at,
    )


def _number_of(record: AppRecord | None, function: str, version_id: str) -> int:
    """The version's number, or the one that it would get."""
    if record is None:
        return 1
    return record.number_of(function, version_id) or record.newest_number(function) + 1


def signed_blob(signed: SignedManifest) -> tuple[str, bytes]:
    """A signed manifest as a blob: its digest and its bytes."""
    data = msgspec.msgpack.encode(signed)
    return hashlib.sha256(data).hexdigest(), data
