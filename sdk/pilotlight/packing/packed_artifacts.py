"""The artifacts of an app: their files, in parts, by content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from pilotlight.definitions.artifact_options import Artifact
from pilotlight.definitions.errors import Misuse
from pilotlight.packing.load import LoadedApps, LoadedFunction
from pilotlight.packing.walk import PackError, checked_file, files_below
from pilotlight_core.model.spec import ArtifactEntry, ArtifactKind, ArtifactPart
from pilotlight_core.model.versions.artifacts import MAX_ARTIFACT_BYTES, MAX_PARTS, PART_BYTES, bytes_of

CHUNK = 2**20


class LocalPart(msgspec.Struct, frozen=True):
    """A piece of a file on this machine, in bytes."""

    path: Path
    start: int
    size: int
    whole: int
    """Of the whole file."""


class PackedArtifacts(msgspec.Struct, frozen=True, kw_only=True):
    """The artifacts of an app."""

    entries: tuple[ArtifactEntry, ...] = ()
    names: dict[str, tuple[str, ...]] = {}
    """function -> those that it uses."""
    parts: dict[str, LocalPart] = {}
    """By sha256."""
    weights: dict[str, tuple[str, ...]] = {}
    """function -> those that it uses of what was pushed."""


def paths_of_artifacts(apps: LoadedApps) -> frozenset[Path]:
    """Return where the artifacts of all functions lie on this machine: no bundle has them."""
    functions = [function for app in apps.values() for function in app.functions.values()]
    return frozenset(_path(artifact, function) for function in functions for artifact in function.artifacts)


def pack_artifacts(functions: dict[str, LoadedFunction]) -> PackedArtifacts:
    """Pack what an app's functions name.

    Raises:
        Misuse: if two artifacts of one name differ.
        PackError: naming what is not there or cannot be packed.
    """
    found: dict[str, tuple[str, Path]] = {}
    for function in functions.values():
        for artifact in function.artifacts:
            this = artifact.kind, _path(artifact, function)
            if found.setdefault(artifact.name, this) != this:
                raise Misuse(
                    f"{function.spec.name} has another artifact {artifact.name!r} than a function before it: "
                    "functions of an app share what has one name.",
                    field="artifacts",
                )
    entries, parts = [], dict[str, LocalPart]()
    for name, (kind, path) in found.items():
        packed = list(_parts(name, path))
        parts |= {entry.sha256: local for entry, local in packed}
        entries.append(ArtifactEntry(kind=ArtifactKind(kind), name=name, parts=tuple(entry for entry, _ in packed)))
    if sum(len(entry.parts) for entry in entries) > MAX_PARTS:
        raise PackError(
            f"The artifacts have more than {MAX_PARTS} files, or parts of {PART_BYTES >> 20} MiB.", field="artifacts"
        )
    if bytes_of(entries) > MAX_ARTIFACT_BYTES:
        raise PackError(f"The artifacts have more than {MAX_ARTIFACT_BYTES >> 30} GiB.", field="artifacts")
    names = {name: tuple(one.name for one in function.artifacts) for name, function in functions.items()}
    weights = {name: function.weights for name, function in functions.items() if function.weights}
    return PackedArtifacts(entries=tuple(entries), names=names, parts=parts, weights=weights)


def _path(artifact: Artifact, function: LoadedFunction) -> Path:
    return (function.folder / Path(artifact.path).expanduser()).resolve()


def _parts(name: str, path: Path) -> Iterator[tuple[ArtifactPart, LocalPart]]:
    try:
        files = list(_files(path))
    except PackError as error:
        raise PackError(f"The artifact {name!r}: {error.detail}", field="artifacts") from None
    if not files:
        raise PackError(f"The artifact {name!r} has no file: {path} is empty.", field="artifacts")
    for inside, file in sorted(files):
        try:
            for digest, local in _read(file):
                yield ArtifactPart(inside, digest, local.size), local
        except OSError as error:
            raise PackError(f"{file} cannot be read: {error.strerror}.", field="artifacts") from error


def _files(path: Path) -> Iterable[tuple[str, Path]]:
    if path.is_dir():
        return ((file.relative_to(path).as_posix(), file) for file in files_below(path))
    if not path.exists():
        raise PackError(f"there is no file or folder {path}.", field="artifacts")
    return [(path.name, checked_file(path, path.name))]


def _read(file: Path) -> Iterator[tuple[str, LocalPart]]:
    """Yield the parts of a file with their digests; an empty file is one part."""
    with file.open("rb") as stream:
        start, whole = 0, os.fstat(stream.fileno()).st_size
        while True:
            digest, size = hashlib.sha256(), 0
            while size < PART_BYTES and (chunk := stream.read(min(CHUNK, PART_BYTES - size))):
                digest.update(chunk)
                size += len(chunk)
            if size or not start:
                yield digest.hexdigest(), LocalPart(file, start, size, whole)
            start += size
            if size < PART_BYTES:
                return
