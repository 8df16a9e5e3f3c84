"""The rules for a bundle's files. Agents create them, so no name is trusted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import MAX_BUNDLE_BYTES, MAX_BUNDLE_FILES, ArtifactPart, FileEntry
from pilotlight_core.model.steering import CONTROLS, MISLEADING

STEERING = re.compile(f"[\t\n{CONTROLS}{MISLEADING}]")
SHA256 = re.compile(r"[0-9a-f]{64}")
LONGEST_PATH = 512
LONGEST_PART = 255
"""Bytes of UTF-8: the limit of common file systems."""
PICKLES = (".pkl", ".pickle", ".joblib")


def check_files(files: Iterable[FileEntry]) -> None:
    """Refuse a bundle that is too large, or has an entry that agents could not create as named.

    Raises:
        BadInput: names the entry.
    """
    files = tuple(files)
    if not 0 < len(files) <= MAX_BUNDLE_FILES:
        raise BadInput(f"files: expected 1 to {MAX_BUNDLE_FILES} files, got {len(files)}.", field="files")
    for index, entry in enumerate(files):
        _check_entry(entry, f"files.{index}")
    total = sum(entry.size for entry in files)
    if total > MAX_BUNDLE_BYTES:
        raise BadInput(f"files: {total} bytes in all, more than {MAX_BUNDLE_BYTES}.", field="files")
    check_together(files, "files")


def check_sizes(files: Iterable[FileEntry], sizes: Mapping[str, int]) -> None:
    """Refuse an entry whose size is not that of its content (`sizes`: bytes by digest), since limits apply to it.

    Raises:
        BadInput: names the entry.
    """
    for index, entry in enumerate(files):
        if (size := sizes.get(entry.sha256, entry.size)) != entry.size:
            field = f"files.{index}.size"
            raise BadInput(f"{field}: {entry.path!r} has {size} bytes, not {entry.size}.", field=field)


def check_path(path: str, field: str) -> None:
    """Refuse a path that is not plainly below the bundle's root.

    Raises:
        BadInput: names `field` and the rule.
    """
    parts = path.split("/")
    try:
        longest = max(len(part.encode()) for part in parts)
    except UnicodeEncodeError:
        longest = LONGEST_PART + 1
    rules = (
        (0 < len(path) <= LONGEST_PATH, f"1 to {LONGEST_PATH} characters"),
        (not path.startswith("/"), "a relative path"),
        ("\\" not in path, "no backslash"),
        (all(part not in ("", ".", "..") for part in parts), "no empty, '.' or '..' part"),
        (STEERING.search(path) is None, "no control characters, and none that turn the direction of text"),
        (longest <= LONGEST_PART, f"parts of at most {LONGEST_PART} bytes of UTF-8"),
    )
    for ok, expected in rules:
        if not ok:
            raise BadInput(f"{field}: {path[:100]!r} is not a path in a bundle: expected {expected}.", field=field)


def _check_entry(entry: FileEntry, field: str) -> None:
    check_path(entry.path, f"{field}.path")
    check_content(entry, field, MAX_BUNDLE_BYTES)


def check_content(entry: FileEntry | ArtifactPart, field: str, most: int, *, allow_pickles: bool = False) -> None:
    """Refuse a pickle unless they are allowed, a malformed digest, and a size beyond `most` bytes.

    Raises:
        BadInput: names the part of `field`.
    """
    if not allow_pickles and entry.path.lower().endswith(PICKLES):
        raise BadInput(
            f"{field}.path: {entry.path!r} is a pickle, which can run code: save tensors as safetensors, data as JSON.",
            field=f"{field}.path",
        )
    if not SHA256.fullmatch(entry.sha256):
        raise BadInput(f"{field}.sha256: expected 64 lower-case hexadecimal digits.", field=f"{field}.sha256")
    if not 0 <= entry.size <= most:
        raise BadInput(f"{field}.size: expected 0 to {most} bytes.", field=f"{field}.size")


def check_together(files: Iterable[FileEntry], field: str) -> None:
    """Refuse files of one name or digest that contradict each other, and files below a file.

    Raises:
        BadInput: names `field`.
    """
    sizes: dict[str, int] = {}
    seen: dict[str, str] = {}
    for entry in files:
        if sizes.setdefault(entry.sha256, entry.size) != entry.size:
            raise BadInput(f"{field}: {entry.path!r} has a digest that stands with another size too.", field=field)
        folded = _fold(entry.path)
        if folded in seen:
            raise BadInput(f"{field}: {entry.path!r} and {seen[folded]!r} are the same name.", field=field)
        seen[folded] = entry.path
    for folded, path in seen.items():
        parts = folded.split("/")
        for upto in range(1, len(parts)):
            if "/".join(parts[:upto]) in seen:
                raise BadInput(f"{field}: {path!r} lies below a file.", field=field)


def _fold(path: str) -> str:
    """The name as case-insensitive or normalising file systems see it."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
