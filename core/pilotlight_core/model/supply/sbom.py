"""The bill of materials of a version, in CycloneDX 1.6: its base environment, locked packages, code, and models. Pure.

Of the same version it is the same to the byte: its serial number is made of the manifest's digest, and its time is that
at which the version was registered. What is not known of a base environment is said, and nothing is made up.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET

from pilotlight_core.model.packages.package_locks import LockedPackage, lock_text
from pilotlight_core.model.packages.requirement_texts import normal_name
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, Manifest
from pilotlight_core.model.supply.inventories import BaseInventory, PackageFact, purl_of
from pilotlight_core.model.supply.licences import LicenceFault, can_have

Component = dict[str, Any]
NAMESPACE = uuid.UUID("6f1c0f1e-5a67-5b0c-9d3c-7d0b6f3c2a11")
"""In which serial numbers are made."""
MODELS = (ArtifactKind.WEIGHTS, ArtifactKind.ADAPTER)
MOST_LISTED = 2_000
"""Files of the code, and of one artifact: the manifest has all, and each function of an app a document of its own."""
GENERATION = "text-generation"
"""What an engine is for."""


def sbom_of(
    manifest: Manifest,
    manifest_digest: str,
    registered_by: float,
    base: BaseInventory | None = None,
    licences: Mapping[str, str] | None = None,
) -> bytes:
    """The document, as JSON.

    Args:
        manifest_digest: sha256 of the manifest's bytes.
        registered_by: unix seconds.
        base: None: no node has told what is in the base environment.
        licences: by package URL, those of locked packages.
    """
    top = f"{manifest.app}.{manifest.function}"
    groups = {
        _base_ref(manifest): _base(manifest, base),
        "packages": [_locked(each, licences or {}) for each in (manifest.lock.packages if manifest.lock else ())],
        "code": _code(manifest),
        "artifacts": [_artifact(each, manifest) for each in manifest.artifacts],
    }
    environment, *installed = groups.pop(_base_ref(manifest))
    components = [environment, *installed, *(each for group in groups.values() for each in group)]
    _check_refs(components)
    direct = [environment["bom-ref"], *(each["bom-ref"] for group in groups.values() for each in group)]
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, manifest_digest)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(int(registered_by), UTC).isoformat(),
            "component": {
                "type": "application",
                "bom-ref": "version",
                "group": manifest.tenant,
                "name": top,
                "version": f"ver_{manifest_digest[:32]}",
                "hashes": _hashes(manifest_digest),
            },
            "properties": [_property("manifest", manifest_digest), *_unknown(base)],
        },
        "components": components,
        "dependencies": [
            {"ref": "version", "dependsOn": sorted(direct)},
            {"ref": environment["bom-ref"], "dependsOn": sorted(each["bom-ref"] for each in installed)},
        ],
    }
    return msgspec.json.encode(document)


def _base_ref(manifest: Manifest) -> str:
    return f"base:{manifest.base}"


def _base(manifest: Manifest, base: BaseInventory | None) -> list[Component]:
    """The base environment, and behind it its packages."""
    environment: Component = {"type": "platform", "bom-ref": _base_ref(manifest), "name": manifest.base}
    if base is None:
        return [environment]
    environment |= {
        "version": base.digest[:16],
        "hashes": _hashes(base.digest),
        "properties": [_property("python", base.python), _property("platform", base.platform)],
    }
    packages = sorted({each.purl: each for each in base.packages}.values(), key=lambda each: each.purl)
    return [environment, *(_package(each, f"base:{each.purl}") for each in packages)]


def _unknown(base: BaseInventory | None) -> list[dict[str, str]]:
    return (
        [] if base is not None else [_property("incomplete", "no node has told the packages of the base environment")]
    )


def _package(fact: PackageFact, ref: str) -> Component:
    found: Component = {
        "type": "library", "bom-ref": ref, "name": normal_name(fact.name), "version": fact.version, "purl": fact.purl,
    }  # fmt: skip
    if fact.licence:
        found["licenses"] = [_licence(fact.licence)]
    return found


def _licence(text: str) -> dict[str, Any]:
    try:
        can_have(text, lambda _: True)
    except LicenceFault:
        return {"license": {"name": text}}
    return {"expression": text}


def _locked(package: LockedPackage, licences: Mapping[str, str]) -> Component:
    purl = purl_of(package.name, package.version)
    fact = PackageFact(name=package.name, version=package.version, licence=licences.get(purl, ""))
    # Any of its files may be installed, so that none of their digests is the package's; this is of their list.
    digest = hashlib.sha256(lock_text((package,)).encode()).hexdigest()
    return _package(fact, f"lock:{purl}") | {"properties": [_property("lock-line", digest)]}


def _file(where: str, path: str, sha256: str) -> Component:
    return {"type": "file", "bom-ref": f"{where}:{path}", "name": path, "hashes": _hashes(sha256)}


def _code(manifest: Manifest) -> list[Component]:
    """Each file; of very many, their list as one."""
    if len(manifest.files) <= MOST_LISTED:
        return [_file("code", entry.path, entry.sha256) for entry in manifest.files]
    lines = "".join(f"{entry.sha256} {entry.path}\n" for entry in manifest.files)
    listed = _file("code", "*", hashlib.sha256(lines.encode()).hexdigest())
    return [listed | {"properties": [_property("files", str(len(manifest.files)))]}]


def _artifact(entry: ArtifactEntry, manifest: Manifest) -> Component:
    """A model, or data that belongs to one, with its files."""
    where = f"artifact:{entry.name}"
    is_model = entry.kind in MODELS
    digest = digest_of_artifact(entry)
    found: Component = {
        "type": "machine-learning-model" if is_model else "data",
        "bom-ref": where,
        "name": entry.name,
        "version": digest[:16],
        "hashes": _hashes(digest),
        "components": [
            _file(where, name, part.sha256) for name, part in zip(_part_names(entry), entry.parts, strict=True)
        ][:MOST_LISTED],
        "properties": [_property("kind", entry.kind.value), _property("bytes", str(sum(p.size for p in entry.parts)))],
    }
    if is_model:
        task = {"task": GENERATION} if manifest.spec.engine is not UNSET else {}
        data = [{"ref": f"artifact:{other.name}"} for other in manifest.artifacts if other.kind not in MODELS]
        found["modelCard"] = {"modelParameters": task | ({"datasets": data} if data else {})}
    else:
        kind = "configuration" if entry.kind is ArtifactKind.CONFIG else "other"
        found["data"] = [{"type": kind, "name": entry.name}]
    return found


def _part_names(entry: ArtifactEntry) -> Iterator[str]:
    """The paths, with a number where a file has several parts."""
    counts = Counter(part.path for part in entry.parts)
    seen: dict[str, int] = {}
    for path in (part.path for part in entry.parts):
        seen[path] = seen.get(path, 0) + 1
        yield f"{path}#{seen[path]}" if counts[path] > 1 else path


def digest_of_artifact(entry: ArtifactEntry) -> str:
    """Of weights that were pushed theirs; else one over its files."""
    if entry.digest:
        return entry.digest
    lines = "".join(f"{part.sha256} {part.size} {part.path}\n" for part in entry.parts)
    return hashlib.sha256(lines.encode()).hexdigest()


def _hashes(sha256: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256}]


def _property(name: str, value: str) -> dict[str, str]:
    return {"name": f"pilotlight:{name}", "value": value}


def _check_refs(components: Iterable[Component]) -> None:
    """The schema does not see whether a name stands for two things, nor whether a reference is to nobody."""
    refs = [
        ref for one in components for ref in (one["bom-ref"], *(each["bom-ref"] for each in one.get("components", ())))
    ]
    if len(set(refs)) < len(refs):
        raise ValueError("a component stands twice in the bill of materials")
