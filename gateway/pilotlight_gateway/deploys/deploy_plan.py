"""Decides about a deploy: whether it is allowed, its versions, and the app's new record. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from pilotlight_core.model.api.call_api import AppInfo, DeployedFunction, DeployRequest, FunctionInfo
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.spec import (
    MAX_FUNCTIONS,
    AppRecord,
    DeployRecord,
    Manifest,
    SignedManifest,
    VersionRecord,
    check_spec,
)
from pilotlight_gateway.deploys.bundles import check_files
from pilotlight_gateway.schemas.schema_validators import check_schemas
from pilotlight_gateway.tenancy.registry_port import RegistryPort

LONGEST_MESSAGE = 500
DEPLOYS_KEPT = 100
VERSIONS_PER_FUNCTION = 5_000
RECORD_BYTES = 800_000
"""An app's record is one message of the bus, which takes 1 MB."""


def check_deploy(app: str, request: DeployRequest) -> None:
    """Refuse a deploy that is not allowed.

    Raises:
        BadInput: naming the field.
    """
    check_name(app, "app")
    check_name(request.base, "base")
    if len(request.message) > LONGEST_MESSAGE or not request.message.isprintable():
        raise BadInput(f"message: expected at most {LONGEST_MESSAGE} printable characters.", field="message")
    names = [function.spec.name for function in request.functions]
    if not 0 < len(names) <= MAX_FUNCTIONS:
        raise BadInput(f"functions: expected 1 to {MAX_FUNCTIONS}, got {len(names)}.", field="functions")
    if len(set(names)) != len(names):
        raise BadInput("functions: two have the same name.", field="functions")
    for function in request.functions:
        spec = function.spec
        check_spec(spec)
        methods = [method.name for method in spec.methods]
        if len(set(methods)) != len(methods):
            raise BadInput(f"{spec.name}: two methods have the same name.", field="methods")
        if not all(part.isidentifier() for part in spec.module.split(".")):
            raise BadInput(f"{spec.name}: module {spec.module!r} is not a module's name.", field="module")
        check_schemas(spec)
    check_files(request.files)


def manifests_of(tenant: str, app: str, request: DeployRequest) -> list[Manifest]:
    """The manifest of each function. The order of the files does not matter."""
    files = tuple(sorted(request.files, key=lambda entry: entry.path))
    return [
        Manifest(
            tenant=tenant, app=app, function=function.spec.name, spec=function.spec, files=files, base=request.base
        )
        for function in request.functions
    ]


@dataclass(frozen=True, kw_only=True)
class Build:
    """A manifest that is signed and stored. It has its id, which is slow to compute."""

    manifest: Manifest
    version_id: str
    signed_sha256: str
    """The blob of the signed manifest."""


def number_of(record: AppRecord | None, function: str, version_id: str) -> int:
    """The 7 of `@v7`: a version's position among the function's, or the one that it would get."""
    known = record.versions.get(function, ()) if record is not None else ()
    return known.index(version_id) + 1 if version_id in known else len(known) + 1


def version_record(build: Build, app: AppRecord | None, at: float) -> VersionRecord:
    """The registry's record of a build, deployed at the unix second `at` when the app was `app`."""
    manifest = build.manifest
    return VersionRecord(
        id=build.version_id,
        tenant=manifest.tenant,
        app=manifest.app,
        function=manifest.function,
        number=number_of(app, manifest.function, build.version_id),
        manifest_sha256=build.signed_sha256,
        spec=manifest.spec,
        bundle_bytes=sum(entry.size for entry in manifest.files),
        created_at=at,
    )


def signed_blob(signed: SignedManifest) -> tuple[str, bytes]:
    """A signed manifest as a blob: its digest and its bytes."""
    data = msgspec.msgpack.encode(signed)
    return hashlib.sha256(data).hexdigest(), data


def next_record(
    record: AppRecord | None, *, tenant: str, app: str, functions: dict[str, str], by: str, at: float, message: str
) -> AppRecord | None:
    """The app's record after a deploy of `functions` (name -> version id); None: nothing changes.

    Raises:
        Conflict: a function has had too many versions.
    """
    if record is None:
        record = AppRecord(tenant=tenant, app=app, revision=0, functions={})
    elif record.functions == functions and not record.stopped:
        return None
    versions = dict(record.versions)
    for name, version_id in functions.items():
        if version_id not in versions.get(name, ()):
            versions[name] = (*versions.get(name, ()), version_id)
        if len(versions[name]) > VERSIONS_PER_FUNCTION:
            raise Conflict(f"{app}.{name} has had {VERSIONS_PER_FUNCTION} versions: deploy it under another name.")
    line = DeployRecord(revision=record.revision + 1, at=at, by=by, functions=functions, message=message)
    return _fitting(
        msgspec.structs.replace(
            record,
            revision=record.revision + 1,
            functions=functions,
            versions=versions,
            history=(*record.history, line)[-DEPLOYS_KEPT:],
            stopped=False,
        )
    )


def stopped_record(record: AppRecord, *, by: str, at: float) -> AppRecord | None:
    """The app's record when it is stopped; None if it is already."""
    if record.stopped:
        return None
    line = DeployRecord(revision=record.revision + 1, at=at, by=by, functions={}, message="stopped")
    history = (*record.history, line)[-DEPLOYS_KEPT:]
    return _fitting(msgspec.structs.replace(record, revision=record.revision + 1, stopped=True, history=history))


def _fitting(record: AppRecord) -> AppRecord:
    """`record` with as much of its history as fits a message.

    Raises:
        Conflict: it does not fit without history.
    """
    while len(msgspec.msgpack.encode(record)) > RECORD_BYTES:
        if len(record.history) <= 1:
            raise Conflict(f"The app {record.app} has had too many versions: deploy it under another name.")
        record = msgspec.structs.replace(record, history=record.history[len(record.history) // 2 :])
    return record


def deployed(record: AppRecord, before: AppRecord | None) -> tuple[DeployedFunction, ...]:
    """The functions of `record`, compared with the record before it."""
    return tuple(
        DeployedFunction(
            name=name,
            version=f"{record.app}.{name}@v{number_of(record, name, version_id)}",
            version_id=version_id,
            endpoint=f"/v1/functions/{record.app}.{name}/calls",
            changed=before is None or before.functions.get(name) != version_id,
        )
        for name, version_id in record.functions.items()
    )


def app_info(record: AppRecord, registry: RegistryPort, containers: Iterable[dict[str, object]]) -> AppInfo:
    """An app as `GET /v1/apps` shows it."""
    running: dict[object, int] = {}
    for container in containers:
        running[container.get("version")] = running.get(container.get("version"), 0) + 1
    functions = []
    for name, version_id in record.functions.items():
        version = registry.version(version_id)
        if version is not None:
            functions.append(
                FunctionInfo(
                    name=name,
                    version=f"{record.app}.{name}@v{number_of(record, name, version_id)}",
                    version_id=version_id,
                    containers=running.get(version_id, 0),
                    spec=version.spec,
                )
            )
    return AppInfo(
        app=record.app,
        revision=record.revision,
        deployed_at=record.history[-1].at if record.history else 0.0,
        stopped=record.stopped,
        functions=tuple(functions),
    )


def own_app(record: AppRecord | None, app: str) -> AppRecord:
    """`record`, if there is one.

    Raises:
        NotFound: there is none.
    """
    if record is None:
        raise NotFound(f"There is no app {app}.")
    return record
