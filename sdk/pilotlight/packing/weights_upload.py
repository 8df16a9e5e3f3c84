"""Pushes weights: reads a folder into parts, asks which are missing, uploads them, asks again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import msgspec

from pilotlight.client.resources.weights import WeightsClient
from pilotlight.definitions.errors import Conflict
from pilotlight.packing.deploys import ROUNDS, Progress, upload_parts
from pilotlight.packing.packed_artifacts import LocalPart
from pilotlight.packing.walk import PackError, files_below
from pilotlight_core.model.api.weights_api import PushResponse, WeightsRequest
from pilotlight_core.model.spec import ArtifactPart
from pilotlight_core.model.versions.artifacts import MAX_ARTIFACT_BYTES, MAX_PARTS
from pilotlight_core.model.versions.pushed_weights import PICKLE_SUFFIXES, WEIGHTS_PART_BYTES

CHUNK = 2**20
READERS = min(4, os.cpu_count() or 1)
"""Threads that read and hash parts."""
ZIP_MAGIC, PICKLED = b"PK\x03\x04", b"data.pkl"
"""How torch begins its files, and what is in the name of their first entry."""
PROTOCOLS = range(2, 6)
"""Of pickles, whose second byte it is; the first is 0x80."""
HEAD = 256
MAX_HEADER = 100 * 2**20
"""Bytes, of the JSON at the beginning of a safetensors file."""


class PackedWeights(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a folder, in parts."""

    parts: tuple[ArtifactPart, ...]
    sources: dict[str, LocalPart]
    """By sha256."""
    files: int
    size: int
    """Bytes of all files."""


def pack_weights(folder: Path, *, allow_pickles: bool = False, progress: Progress | None = None) -> PackedWeights:
    """Read the files of a folder; `progress` is told how many bytes are read.

    Raises:
        PackError: naming what is not there or cannot be pushed.
    """
    if not folder.is_dir():
        raise PackError(f"{folder} is no folder: name the one that has the weights.", field="folder")
    found = [(path.relative_to(folder).as_posix(), path) for path in files_below(folder, allow_pickles=True)]
    if not found:
        raise PackError(f"{folder} has no file.", field="folder")
    try:
        for inside, path in found:
            _check_content(inside, path, allow_pickles=allow_pickles)
        pieces = [(inside, local) for inside, path in sorted(found) for local in _pieces(path)]
        size = sum(local.size for _, local in pieces)
        if len(pieces) > MAX_PARTS or size > MAX_ARTIFACT_BYTES:
            raise PackError(
                f"{folder} has {size >> 30} GiB in {len(pieces)} parts; the most are {MAX_ARTIFACT_BYTES >> 30} GiB in "
                f"{MAX_PARTS} parts of at most {WEIGHTS_PART_BYTES >> 20} MiB.",
                field="folder",
            )
        digests = _digests([local for _, local in pieces], size, progress)
    except OSError as error:
        raise PackError(f"{error.filename} cannot be read: {error.strerror}.", field="folder") from error
    parts = tuple(
        ArtifactPart(inside, digest, local.size) for (inside, local), digest in zip(pieces, digests, strict=True)
    )
    sources = {digest: local for (_, local), digest in zip(pieces, digests, strict=True)}
    return PackedWeights(parts=parts, sources=sources, files=len(found), size=size)


async def push_weights(
    weights: WeightsClient,
    name: str,
    packed: PackedWeights,
    *,
    allow_pickles: bool = False,
    signature: str = "",
    progress: Progress | None = None,
    told: Callable[[int, int], None] | None = None,
) -> PushResponse:
    """Push packed weights; what is stored is not sent again.

    Args:
        signature: what the tenant has signed of them; "": nothing, or what was pushed with them before.
        told: hears how many parts are missing, and their bytes.

    Raises:
        Misuse: if a file changed since it was packed.
        PilotlightError: why the platform refused.
    """
    request = WeightsRequest(parts=packed.parts, allow_pickles=allow_pickles, signature=signature)
    for _ in range(ROUNDS):
        answer = await weights.push(name, request)
        if not answer.missing:
            return answer
        if told is not None:
            told(len(answer.missing), sum(packed.sources[digest].size for digest in answer.missing))
        await upload_parts(weights.platform, packed.sources, answer.missing, progress)
    raise Conflict("Parts that were uploaded are missing again and again: try once more.")


def _pieces(path: Path) -> Iterator[LocalPart]:
    """The parts of a file; an empty file is one."""
    whole = path.stat().st_size
    for start in range(0, max(whole, 1), WEIGHTS_PART_BYTES):
        yield LocalPart(path, start, min(WEIGHTS_PART_BYTES, whole - start), whole)


def _digests(pieces: list[LocalPart], size: int, progress: Progress | None) -> list[str]:
    done, digests = 0, []
    with ThreadPoolExecutor(READERS) as readers:
        for local, digest in zip(pieces, readers.map(_digest, pieces), strict=True):
            digests.append(digest)
            done += local.size
            if progress is not None:
                progress(done, size)
    return digests


def _digest(local: LocalPart) -> str:
    digest, left = hashlib.sha256(), local.size
    with local.path.open("rb", buffering=0) as file:
        file.seek(local.start)
        while left and (chunk := file.read(min(CHUNK, left))):
            digest.update(chunk)
            left -= len(chunk)
    if left:
        raise PackError(f"{local.path} has become shorter while it was read: push again.", field="folder")
    return digest.hexdigest()


def _check_content(inside: str, path: Path, *, allow_pickles: bool) -> None:
    with path.open("rb") as file:
        head = file.read(HEAD)
        if not allow_pickles and (inside.lower().endswith(PICKLE_SUFFIXES) or _is_pickle(head)):
            raise PackError(
                f"{inside!r} is a pickle, which can run code when it is read: save tensors as safetensors, or push "
                "with --allow-pickle if you trust it.",
                field="folder",
            )
        if inside.lower().endswith(".safetensors") and not _has_header(head, file, path.stat().st_size):
            raise PackError(
                f"{inside!r} is no safetensors file, or was cut off: its header cannot be read.", field="folder"
            )


def _is_pickle(head: bytes) -> bool:
    is_bare = len(head) > 1 and head[0] == 0x80 and head[1] in PROTOCOLS
    return is_bare or (head.startswith(ZIP_MAGIC) and PICKLED in head)


def _has_header(head: bytes, file: BinaryIO, size: int) -> bool:
    length = int.from_bytes(head[:8], "little")
    if len(head) < 8 or not 0 < length <= min(MAX_HEADER, size - 8):
        return False
    file.seek(8)
    try:
        header = json.loads(file.read(length))
        ends = [one["data_offsets"][1] for name, one in header.items() if name != "__metadata__"]
        return 8 + length + max(ends, default=0) == size
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return False
