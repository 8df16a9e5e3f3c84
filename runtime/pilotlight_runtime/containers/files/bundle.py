"""Checks of a version's bundle: the signed manifest, and the files it names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

import msgspec

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.node_messages import Bind
from pilotlight_core.model.spec import (
    MAX_BUNDLE_BYTES,
    MAX_BUNDLE_FILES,
    ArtifactPart,
    FileEntry,
    Manifest,
    SignedManifest,
)
from pilotlight_core.model.versions.manifest_codec import lacking_features, version_id


class CannotVerify(PilotlightError):
    """What the blob store holds is not what was signed."""

    code = "misconfigured"


class SignatureRefused(CannotVerify):
    """What the version's tenant has signed does not hold, or its key counts no more: the tenant mends it."""


DIGEST = re.compile(r"[0-9a-f]{64}")
_decoder = msgspec.msgpack.Decoder(SignedManifest)


def read_signed(data: bytes) -> SignedManifest:
    """The signed manifest in a blob; raises CannotVerify if there is none."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        raise CannotVerify(f"The version's manifest cannot be read: {error}.") from error


def check_manifest(manifest: Manifest, signed: SignedManifest, bind: Bind) -> None:
    """Raise CannotVerify unless the manifest is the one that the command names, and this release can run it."""
    if (version := version_id(signed.manifest)) != bind.version:
        raise CannotVerify(f"The manifest is of {version}, not of {bind.version}.")
    if lacking := lacking_features(manifest):
        raise CannotVerify(f"The version needs {', '.join(lacking)}, which this node's agent lacks: upgrade the agent.")
    if manifest.tenant != bind.tenant:
        raise CannotVerify(f"The manifest belongs to {manifest.tenant}, not to {bind.tenant}.")
    if len(manifest.files) > MAX_BUNDLE_FILES or sum(file.size for file in manifest.files) > MAX_BUNDLE_BYTES:
        raise CannotVerify(f"The bundle has more than {MAX_BUNDLE_FILES} files or {MAX_BUNDLE_BYTES} bytes.")
    check_files(manifest.files)


def check_files(files: tuple[FileEntry, ...]) -> None:
    """Check that paths stay inside and are files or folders, not both, and digests and sizes; raises CannotVerify."""
    check_paths([file.path for file in files])
    check_digests(files)


def check_paths(paths: Iterable[str]) -> None:
    """Check that paths stay inside and are files or folders, not both; raises CannotVerify."""
    seen: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        if not _is_inside(path):
            raise CannotVerify(f"The version names the path {path!r}, which is not one inside it.")
        if path in seen:
            raise CannotVerify(f"The version names the path {path!r} twice.")
        seen.add(path)
        folders.update(parent.as_posix() for parent in PurePosixPath(path).parents)
    if both := seen & folders:
        raise CannotVerify(f"The version names {min(both)!r} as a file and as a folder.")


def check_digests(files: Iterable[FileEntry | ArtifactPart]) -> None:
    """Check digests, and that there is one size to each; raises CannotVerify."""
    sizes: dict[str, int] = {}
    for file in files:
        if not DIGEST.fullmatch(file.sha256) or file.size < 0:
            raise CannotVerify(f"The version gives no digest and size of {file.path!r}.")
        if sizes.setdefault(file.sha256, file.size) != file.size:
            raise CannotVerify(f"The version gives two sizes of the content of {file.path!r}.")


def _is_inside(text: str) -> bool:
    path = PurePosixPath(text)
    if path.is_absolute() or not path.parts or ".." in path.parts:
        return False
    return path.as_posix() == text and "\0" not in text
