"""What a version was built of, as an in-toto statement with the SLSA provenance predicate. Pure.

The gateway that registers a version is its builder. The statement names the manifest as its subject, what it was made
of as resolved dependencies, and beside it (by-products) the documents about it by their digests: the bill of materials,
what policies said, and the tenant's signatures. So whoever verifies its signature knows them all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from pilotlight_core.model.spec import Manifest
from pilotlight_core.model.supply.inventories import purl_of
from pilotlight_core.model.supply.sbom import digest_of_artifact

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PROVENANCE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "https://pilotlight.dev/deploy/v1"
BUILDER = "https://pilotlight.dev/gateway/v1"
SBOM, VERDICT, SIGNATURE = "sbom", "verdict", "signature:"
STATEMENT_BYTES = 16 * 2**20


class ProvenanceFault(ValueError):
    """Why a statement does not hold, as a sentence."""


class _Resource(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    digest: dict[str, str] = {}


class _RunDetails(msgspec.Struct, frozen=True, kw_only=True):
    byproducts: tuple[_Resource, ...] = ()


class _Predicate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    run_details: _RunDetails


class _Statement(
    msgspec.Struct, frozen=True, kw_only=True, rename={"type": "_type", "predicate_type": "predicateType"}
):
    type: str
    subject: tuple[_Resource, ...]
    predicate_type: str
    predicate: _Predicate


def provenance_of(
    manifest: Manifest, manifest_digest: str, documents: Mapping[str, str], at: float, base_digest: str = ""
) -> bytes:
    """The statement, in JSON.

    Args:
        documents: by name (`SBOM`, `VERDICT`, `SIGNATURE` and what was signed), the digest of each.
        at: unix seconds of the deploy.
        base_digest: of the base environment; "": it is not known.
    """
    lock = manifest.lock
    return msgspec.json.encode(
        {
            "_type": STATEMENT_TYPE,
            "subject": [
                {"name": f"{manifest.tenant}/{manifest.app}.{manifest.function}", "digest": {"sha256": manifest_digest}}
            ],
            "predicateType": PROVENANCE_TYPE,
            "predicate": {
                "buildDefinition": {
                    "buildType": BUILD_TYPE,
                    "externalParameters": {
                        "tenant": manifest.tenant,
                        "app": manifest.app,
                        "function": manifest.function,
                        "base": manifest.base,
                        "requirements": list(lock.requirements) if lock else [],
                    },
                    "resolvedDependencies": list(_dependencies(manifest, base_digest)),
                },
                "runDetails": {
                    "builder": {"id": BUILDER},
                    "metadata": {"startedOn": datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")},
                    "byproducts": [
                        {"name": name, "digest": {"sha256": digest}} for name, digest in sorted(documents.items())
                    ],
                },
            },
        }
    )


def _dependencies(manifest: Manifest, base_digest: str) -> Iterator[dict[str, Any]]:
    base = base_digest or (manifest.lock.base_digest if manifest.lock else "")
    yield {"name": f"base:{manifest.base}", **({"digest": {"sha256": base}} if base else {})}
    # One for all files: the bill of materials names each, and there may be ten thousand.
    lines = "".join(f"{entry.sha256} {entry.path}\n" for entry in manifest.files)
    yield {"name": "code", "digest": {"sha256": hashlib.sha256(lines.encode()).hexdigest()}}
    for package in manifest.lock.packages if manifest.lock else ():
        uri = purl_of(package.name, package.version)
        # Any of its files may be installed; a descriptor has one digest of a kind.
        digest = {"digest": {"sha256": package.hashes[0]}} if len(package.hashes) == 1 else {}
        yield {"uri": uri, **digest}
    for artifact in manifest.artifacts:
        yield {"name": f"artifact:{artifact.name}", "digest": {"sha256": digest_of_artifact(artifact)}}


def documents_of(statement: bytes, manifest_digest: str) -> dict[str, str]:
    """By name, the digests of the documents about the version with this manifest.

    Raises:
        ProvenanceFault: it is none, or of another version.
    """
    try:
        read = msgspec.json.decode(statement, type=_Statement)
    except msgspec.DecodeError as error:
        raise ProvenanceFault(f"The version's provenance cannot be read: {error}.") from None
    if (read.type, read.predicate_type) != (STATEMENT_TYPE, PROVENANCE_TYPE):
        raise ProvenanceFault(f"The version's provenance is of another kind: {read.predicate_type}.")
    if [each.digest.get("sha256") for each in read.subject] != [manifest_digest]:
        raise ProvenanceFault("The provenance is of another version.")
    return {each.name: each.digest.get("sha256", "") for each in read.predicate.run_details.byproducts}
