"""A release that is kept: its source, a state that it left, and what it said of that."""

from __future__ import annotations

import base64
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.releases.make_state import Told


def unpack_data(archive: tarfile.TarFile, into: Path) -> None:
    """Unpack an archive of this repository, as data where this Python has the filter: 3.11.4 and later have."""
    archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
    archive.extractall(into)  # noqa: S202 - of our own making


@dataclass(frozen=True)
class StoredRelease:
    """One folder beside this file."""

    folder: Path

    def unpack(self, name: str, into: Path) -> Path:
        """Its `source` or its `state`, as a folder in `into`."""
        with tarfile.open(self.folder / f"{name}.tar.xz") as archive:
            unpack_data(archive, into)
        return into / name if name == "state" else into

    @property
    def told(self) -> Told:
        return msgspec.json.decode((self.folder / "told.json").read_bytes(), type=Told)

    @property
    def enums(self) -> dict[str, list[Any]]:
        return dict(self._samples()["enums"])

    def samples(self) -> Iterator[tuple[str, bytes, Any]]:
        """(type, bytes, what the release read in them)."""
        for name, both in self._samples()["samples"].items():
            for sample in both.values():
                yield name, base64.b64decode(sample["bytes"]), sample["read"]

    def _samples(self) -> Any:
        return json.loads((self.folder / "samples.json").read_text())


RELEASES = [StoredRelease(folder) for folder in sorted(Path(__file__).parent.glob("v*_*_*"))]
each_release = pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.folder.name)
