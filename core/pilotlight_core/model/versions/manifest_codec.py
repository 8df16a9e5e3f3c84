"""The bytes of a manifest, and the identity of the version that they are.

A version is named by the digest of the bytes that were signed, and nobody encodes them again to check them: readers of
another release, with more fields or fewer, come to the same name. The bytes of a new manifest are such that

- an unchanged function keeps its version however many fields later releases add: these are written only where they
  differ from their default;
- agents of release 0.1, which knows exactly `FIELDS_OF_0_1` and insists on all of them, run whatever uses no more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from pilotlight_core.model.packages.package_locks import PackageLock
from pilotlight_core.model.placing import Measured, Model, Placing, Spread
from pilotlight_core.model.secrets.secret_uses import uses_files
from pilotlight_core.model.spec import (
    SLO,
    ArtifactEntry,
    Batching,
    FileEntry,
    FunctionSpec,
    Manifest,
    MethodSpec,
    limit_of,
)
from pilotlight_core.model.units import GpuAsk

ARTIFACTS = "artifacts"
"""Lay out the files of `Manifest.artifacts` for the containers."""
SANDBOX_LIMITS = "sandbox-limits"
"""Hold a container to `shm`, `scratch` and `pids` of its specification."""
USAGE_TAGS = "usage-tags"
"""Put `tags` of the specification, which agents of 0.1 refuse as unknown, on what is metered."""
SCHEDULES = "schedules"
"""Take `schedules` of the specification, which agents of 0.1 refuse as unknown, and leave them to the duties."""
WARM_WINDOWS = "warm-windows"
"""Read a specification with `warm`, which agents of 0.1 refuse as unknown; controllers go by it."""
MAX_UNITS = "max-units"
"""Read a specification with `max_units`, which agents of 0.1 refuse as unknown; gateways and the ledger go by it."""
NETWORK = "network"
"""Give a container the way out that `network` of its specification names; without it there is none."""
SECRETS = "secrets"
"""Ask for the values of `secrets` when a container loads, and hide them in its log."""
SECRET_FILES = "secret-files"  # noqa: S105 - a feature
"""Give values as files too, in a folder that is the container's own."""
PARK_HOOKS = "park-hooks"
"""Run `park` and `unpark` of the specification, which agents of 0.1 refuse as unknown, when a container is parked."""
REHEARSAL = "rehearsal"
"""Run warm-up examples before a container takes calls, and its check, again from time to time."""
WEIGHTS = "weights"
"""Lay out weights that were pushed, find them for `pilotlight.weights`, and tell that they are there."""
REQUIREMENTS = "requirements"
"""Build what `lock` of the manifest names, and show it to the container; of nodes that have a way to an index."""
RESUMABLE = "resumable"
"""Pass on the checkpoints of a stream, and start one from a checkpoint."""
DRAIN_HOOKS = "drain-hooks"
"""Run `drain` of the specification when the node is taken away."""
ENGINE = "engine"
"""Run the engine that `engine` of the specification names, in the place of code."""
PIPELINE = "pipeline"
"""Read a specification with `pipeline`, by which gateways go, and run companions, with `hook` in theirs."""
SERVED_NAMES = "served-names"
"""Read a specification with `serves`, which agents of 0.1 refuse as unknown; gateways go by it."""
FALLBACK = "fallback"
"""Read a specification with `fallback`, which agents of before refuse as unknown; gateways go by it."""
TWIN = "twin"
"""Read a specification with `twin`, as well."""
INVENTORY = "inventory"
"""Tell a gateway what packages a base environment has; no manifest needs it."""
EVIDENCE = "evidence"
"""Have the documents of a version, verify them before it is loaded, and what its tenant has signed of it (`signed`)."""
FEATURES: frozenset[str] = frozenset({
    ARTIFACTS, SANDBOX_LIMITS, USAGE_TAGS, SCHEDULES, WARM_WINDOWS, MAX_UNITS, NETWORK, SECRETS, SECRET_FILES,
    PARK_HOOKS, REHEARSAL, WEIGHTS, REQUIREMENTS, RESUMABLE, DRAIN_HOOKS, ENGINE, PIPELINE, SERVED_NAMES, FALLBACK,
    TWIN, INVENTORY, EVIDENCE,
})  # fmt: skip
"""What this release can do that an earlier one cannot, and what a manifest may need therefore."""
FIELDS_OF_0_1: dict[type[msgspec.Struct], int] = {
    Manifest: 6, FunctionSpec: 25, MethodSpec: 7, SLO: 3, Batching: 4, FileEntry: 3, GpuAsk: 2,
    Placing: 12, Spread: 2, Model: 10, Measured: 5,
}  # fmt: skip
"""How many fields of each struct, the first ones, are written at their default too. Never changed."""


def encode_manifest(manifest: Manifest) -> bytes:
    """The bytes to sign: equal manifests have equal ones."""
    return msgspec.json.encode(_plain(manifest))


def version_id(encoded: bytes) -> str:
    """`ver_` and 32 hex digits of the sha256 of a manifest's bytes."""
    return f"ver_{hashlib.sha256(encoded).hexdigest()[:32]}"


def needs_of(
    spec: FunctionSpec, artifacts: Collection[ArtifactEntry] = (), lock: PackageLock | None = None
) -> tuple[str, ...]:
    """The features without which an agent cannot run a version, sorted: `Manifest.needs`."""
    used = {
        ARTIFACTS: bool(artifacts),
        SANDBOX_LIMITS: any(map(limit_of, (spec.shm, spec.scratch, spec.pids))),
        USAGE_TAGS: spec.tags is not UNSET,
        SCHEDULES: spec.schedules is not UNSET,
        WARM_WINDOWS: spec.warm is not UNSET,
        MAX_UNITS: spec.max_units is not UNSET,
        NETWORK: spec.network is not UNSET,
        SECRETS: spec.secrets is not UNSET,
        SECRET_FILES: uses_files(spec),
        PARK_HOOKS: spec.park is not UNSET or spec.unpark is not UNSET,
        REHEARSAL: spec.rehearsal is not UNSET,
        WEIGHTS: any(artifact.digest for artifact in artifacts),
        REQUIREMENTS: lock is not None and bool(lock.packages),
        RESUMABLE: spec.resumable is not UNSET,
        DRAIN_HOOKS: spec.drain is not UNSET,
        ENGINE: spec.engine is not UNSET,
        PIPELINE: spec.pipeline is not UNSET or spec.hook is not UNSET,
        SERVED_NAMES: spec.serves is not UNSET,
        FALLBACK: spec.fallback is not UNSET,
        TWIN: spec.twin is not UNSET,
    }
    return tuple(sorted(feature for feature, is_used in used.items() if is_used))


def lacking_features(manifest: Manifest) -> list[str]:
    """What the manifest needs and this release cannot do, sorted."""
    return sorted(set(manifest.needs) - FEATURES)


def _plain(value: Any) -> Any:
    """The value as objects, lists and scalars, in the order in which they are written."""
    if isinstance(value, msgspec.Struct):
        fields = _fields(type(value))
        if fields is None:
            return value
        return {
            field.name: _plain(inner)
            for field in fields
            if (inner := getattr(value, field.attribute)) != field.default or field.always
        }
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in sorted(value)}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


class _Field(NamedTuple):
    attribute: str
    name: str
    """As it is written."""
    default: Any
    always: bool
    """Whether it is written at its default too."""


@cache
def _fields(cls: type[msgspec.Struct]) -> tuple[_Field, ...] | None:
    """The fields of a type; None: it is written as msgspec does, since all of it is, and it has scalars only.

    There are thousands of files in a manifest.
    """
    known = FIELDS_OF_0_1.get(cls, 0)
    fields = tuple(
        _Field(field.name, field.encode_name, _default(field), number < known)
        for number, field in enumerate(msgspec.structs.fields(cls))
    )
    scalars = all(field.type in (str, int, float, bool) for field in msgspec.structs.fields(cls))
    whole = all(field.always or field.default is msgspec.NODEFAULT for field in fields)
    return None if scalars and whole else fields


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
