"""A version's bundle on its way to a container: the signed manifest, checked, and the files it names. Pure checks."""

from __future__ import annotations

from pathlib import PurePosixPath

import msgspec

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages import Bind
from pilotlight_core.model.spec import MAX_BUNDLE_BYTES, MAX_BUNDLE_FILES, FileEntry, Manifest, SignedManifest


class CannotVerify(PilotlightError):
    """What the blob store holds is not what was signed: it must not run."""

    code = "load_failed"


_decoder = msgspec.msgpack.Decoder(SignedManifest)


def read_signed(data: bytes) -> SignedManifest:
    """The signed manifest in a blob.

    Raises:
        CannotVerify: if there is none.
    """
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        raise CannotVerify(f"The version's manifest cannot be read: {error}.") from error


def check_manifest(manifest: Manifest, bind: Bind) -> None:
    """Refuse a manifest, whoever signed it, that is not the one which the command names.

    Raises:
        CannotVerify: saying what differs.
    """
    if manifest.version_id != bind.version:
        raise CannotVerify(f"The manifest is of {manifest.version_id}, not of {bind.version}.")
    if manifest.tenant != bind.tenant:
        raise CannotVerify(f"The manifest belongs to {manifest.tenant}, not to {bind.tenant}.")
    if len(manifest.files) > MAX_BUNDLE_FILES or sum(file.size for file in manifest.files) > MAX_BUNDLE_BYTES:
        raise CannotVerify(f"The bundle has more than {MAX_BUNDLE_FILES} files or {MAX_BUNDLE_BYTES} bytes.")
    check_paths(manifest.files)


def check_paths(files: tuple[FileEntry, ...]) -> None:
    """Refuse paths that leave the bundle, and a path that is a file and a folder at once.

    Raises:
        CannotVerify: naming the path.
    """
    seen: set[str] = set()
    folders: set[str] = set()
    for file in files:
        path = PurePosixPath(file.path)
        plain = not path.is_absolute() and path.as_posix() == file.path and "\0" not in file.path
        if not plain or ".." in path.parts or path == PurePosixPath("."):
            raise CannotVerify(f"The bundle names the path {file.path!r}, which is not one inside it.")
        if file.path in seen:
            raise CannotVerify(f"The bundle names the path {file.path!r} twice.")
        seen.add(file.path)
        folders.update(parent.as_posix() for parent in path.parents)
    if both := seen & folders:
        raise CannotVerify(f"The bundle names {min(both)!r} as a file and as a folder.")
