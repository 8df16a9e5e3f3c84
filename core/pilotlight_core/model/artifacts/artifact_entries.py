"""Artifacts in a manifest: large files of a version beside its bundle, in parts."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class ArtifactKind(StrEnum):
    """What an artifact is."""

    WEIGHTS = "weights"  # the parameters of a model
    TOKENIZER = "tokenizer"  # what turns text into tokens
    ADAPTER = "adapter"  # parameters that go on top of others
    CONFIG = "config"  # settings of a model or an engine
    SBOM = "sbom"  # a list of what the version is made of


class ArtifactPart(msgspec.Struct, frozen=True):
    """A file of an artifact, or a piece of a large one: path below the artifact (POSIX, relative), digest, bytes."""

    path: str
    sha256: str
    size: int


class ArtifactEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Files of a version beside its bundle, whose limits they do not share. `versions.artifacts` has theirs."""

    kind: ArtifactKind
    name: str
    """One of its version; its folder in containers."""
    parts: tuple[ArtifactPart, ...]
    """Those of one path stand together, and their contents make up the file in this order."""
    digest: str = ""
    """Of weights that were pushed (`versions.pushed_weights`); empty: it came with its app's deploy."""


class ArtifactInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is shown of an artifact."""

    kind: ArtifactKind
    name: str
    files: int
    size: int
    """Bytes of all files."""
    digest: str = ""
    """Of weights that were pushed."""
