"""Functions and versions as they are deployed: `greet` of `acme`'s app `hello`, unless a test says more."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.spec import FileEntry, FunctionSpec, Manifest, MethodSpec, VersionRecord
from pilotlight_core.model.versions.manifest_codec import encode_manifest, version_id


def method(name: str = "", attribute: str = "f", **more: Any) -> MethodSpec:
    """What can be called: a function itself, or with a name a method of a class."""
    return MethodSpec(name=name, attribute=attribute, **more)


def function_spec(name: str = "greet", *methods: MethodSpec, **options: Any) -> FunctionSpec:
    """A function of the module `app`; without `methods` a plain one, which is called by its own name."""
    fields = {"module": "app", "qualname": name, "methods": methods or (method(attribute=name),)} | options
    return FunctionSpec(name=name, **fields)


def version_record(spec: FunctionSpec | None = None, **more: Any) -> VersionRecord:
    """The registry's record of a version of `spec`."""
    spec = spec or function_spec()
    fields: dict[str, Any] = {
        "id": "ver_1", "tenant": "acme", "app": "hello", "function": spec.name, "number": 1, "manifest_sha256": "00",
        "bundle_bytes": 1, "created_at": 0.0,
    }  # fmt: skip
    return VersionRecord(spec=spec, **fields | more)


def manifest(spec: FunctionSpec, *files: FileEntry, **more: Any) -> Manifest:
    """What is signed of a version."""
    fields: dict[str, Any] = {"tenant": "acme", "app": "hello", "function": spec.name} | more
    return Manifest(spec=spec, files=files, **fields)


def id_of(manifest: Manifest) -> str:
    """The identity of the version that is signed."""
    return version_id(encode_manifest(manifest))
