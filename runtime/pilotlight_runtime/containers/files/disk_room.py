"""Room on the disk of a node's files, so that no version fills it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.spec import FileEntry

RESERVE_PART = 20
RESERVE_BYTES = 2**30
"""Of the disk a twentieth is left free, and no more than this: logs and the usage log need little."""


class NoDiskRoom(PilotlightError):
    """The files of a version do not fit on the disk."""

    code = "misconfigured"

    def __init__(self, detail: str, lacking: int = 0) -> None:
        """`lacking`: bytes that would have to be free beside those that are."""
        super().__init__(detail)
        self.lacking = lacking


class _Coming:
    """A file that is to be fetched: its bytes that are not on the disk yet."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.holders = 0
        self.path: Path | None = None

    def bytes(self) -> int:
        written = 0
        if self.path is not None:
            with suppress(FileNotFoundError):
                written = self.path.stat().st_blocks * 512  # parts are written at their places, with holes before
        return max(0, self.size - written)


def disk_room(folder: Path) -> int:
    """The bytes that may be written to the disk of `folder`, or of what is above it."""
    while not folder.exists():
        folder = folder.parent
    usage = shutil.disk_usage(folder)
    return usage.free - min(usage.total // RESERVE_PART, RESERVE_BYTES)


class DiskRoom:
    """What is free, less what is being fetched."""

    def __init__(self, folder: Path, room: Callable[[Path], int] = disk_room) -> None:
        self._folder = folder
        self._room = room
        self._coming: dict[tuple[str, str], _Coming] = {}

    @contextmanager
    def held(self, tenant: str, files: Iterable[FileEntry]) -> Iterator[None]:
        """Hold room for files that are to be fetched; what is being fetched already has it.

        Raises:
            NoDiskRoom: they do not fit.
        """
        sizes = {(tenant, file.sha256): file.size for file in files}
        new, room = self._wanted(sizes)
        if new > room:
            raise NoDiskRoom(
                f"The version has {new} bytes of files that are not on this node, whose disk has room for "
                f"{max(0, room)}.",
                lacking=new - room,
            )
        for key, size in sizes.items():
            self._coming.setdefault(key, _Coming(size)).holders += 1
        try:
            yield
        finally:
            for key in sizes:
                one = self._coming[key]
                one.holders -= 1
                if not one.holders:
                    del self._coming[key]

    def lacking(self, tenant: str, files: Iterable[FileEntry]) -> int:
        """How many bytes more would have to be free for files to fit."""
        new, room = self._wanted({(tenant, file.sha256): file.size for file in files})
        return max(0, new - room)

    def _wanted(self, sizes: Mapping[tuple[str, str], int]) -> tuple[int, int]:
        """The bytes that nobody fetches yet, and for how many there is room."""
        new = sum(size for key, size in sizes.items() if key not in self._coming)
        room = self._room(self._folder) - sum(one.bytes() for one in self._coming.values()) if new else 0
        return new, room

    def write(self, tenant: str, digest: str, path: Path) -> None:
        """A file is being written to `path`."""
        if one := self._coming.get((tenant, digest)):
            one.path = path

    def settle(self, tenant: str, digest: str) -> None:
        """A file has been written."""
        if one := self._coming.get((tenant, digest)):
            one.size = 0
