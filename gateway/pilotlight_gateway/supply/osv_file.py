"""The operator's file of known vulnerabilities: an export of OSV, for a platform that reaches no such service.

    https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip

It may also be a file with a JSON document in each line, or one with a list of them. Of each document those parts are
kept that say which versions of which package are affected; what is about packages of other ecosystems alone is counted,
and its date says nothing. The file is read when it is first needed, and again when it has changed; its age is that of
its newest entry, whatever its own date.
"""

from __future__ import annotations

import hashlib
import threading
import zipfile
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
import structlog

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.packages.requirement_texts import normal_name
from pilotlight_core.model.supply.findings import VulnerabilityData
from pilotlight_gateway.supply.osv_documents import KnownVulnerability, OsvDocument, merged, vulnerabilities_in

MOST_BYTES = 2 * 2**30
"""Of all documents: a file that claims more is no export."""
MOST_DOCUMENT = 16 * 2**20
UNREADABLE = (
    OSError, ValueError, zipfile.BadZipFile, zlib.error, msgspec.DecodeError, RecursionError,
    RuntimeError,  # an archive that is sealed, or packed in a way that is not known
)  # fmt: skip

log = structlog.get_logger(__name__)


class NoOsvFile(PilotlightError):
    """The file cannot be read, or is none."""

    code = "misconfigured"


_decoder = msgspec.json.Decoder(OsvDocument)
_list_decoder = msgspec.json.Decoder(list[OsvDocument])


class OsvData(NamedTuple):
    """What a file says."""

    known: dict[str, tuple[KnownVulnerability, ...]]
    """By normal name of the package."""
    published_at: float
    entries: int
    """About packages of the index."""
    foreign: int
    """Entries about other ecosystems alone, which are passed over."""
    sha256: str

    def of(self, name: str, version: str) -> list[KnownVulnerability]:
        """What is known of a version."""
        return [each for each in self.known.get(normal_name(name), ()) if each.affects(version)]

    def about(self, at: float) -> VulnerabilityData:
        return VulnerabilityData(
            published_at=self.published_at, age_s=at - self.published_at, entries=self.entries, foreign=self.foreign,
            sha256=self.sha256,
        )  # fmt: skip


class OsvFile:
    """The file at a path, or none. Methods block: call them in a thread."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._read: tuple[tuple[int, int, int], OsvData] | None = None

    def data(self) -> OsvData | None:
        """What it says now; None: the platform has no such file.

        Raises:
            NoOsvFile: it is not there, or cannot be read.
        """
        if self._path is None:
            return None
        with self._lock:
            try:
                stat = self._path.stat()
                mark = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
                if self._read is None or self._read[0] != mark:
                    self._read = mark, read_osv(self._path)
                    read = self._read[1]
                    log.info(
                        "known vulnerabilities were read",
                        entries=read.entries,
                        foreign=read.foreign,
                        path=str(self._path),
                    )
            except UNREADABLE as error:
                raise NoOsvFile(
                    f"The file of known vulnerabilities {self._path} cannot be read: {error}. Expected an export of "
                    "OSV, such as PyPI/all.zip."
                ) from None
            return self._read[1]


def read_osv(path: Path) -> OsvData:
    """Raises what is `UNREADABLE`."""
    known: dict[str, list[KnownVulnerability]] = {}
    newest, entries, foreign = 0.0, 0, 0
    for document in _documents(path):
        found = list(vulnerabilities_in(document))
        if not found:
            foreign += 1
            continue
        newest, entries = max(newest, _seconds(document.modified)), entries + 1
        for name, one in found if not document.withdrawn else ():
            known.setdefault(normal_name(name), []).append(one)
    if not entries:
        raise ValueError(f"it has no entry about a package of PyPI, and {foreign} others")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return OsvData({name: merged(found) for name, found in known.items()}, newest, entries, foreign, digest)


def _documents(path: Path) -> Iterator[OsvDocument]:
    if zipfile.is_zipfile(path):
        yield from _zipped(path)
        return
    with path.open("rb") as file:
        first = file.read(1)
        file.seek(0)
        if first == b"[":
            yield from _list_decoder.decode(file.read(MOST_BYTES))
            return
        while line := file.readline(MOST_DOCUMENT + 1):
            if len(line) > MOST_DOCUMENT:
                raise ValueError("its documents are larger than those of an export")
            if line.strip():
                yield _decoder.decode(line)


def _zipped(path: Path) -> Iterator[OsvDocument]:
    with zipfile.ZipFile(path) as archive:
        listed = [each for each in archive.infolist() if each.filename.endswith(".json")]
        if sum(each.file_size for each in listed) > MOST_BYTES or any(e.file_size > MOST_DOCUMENT for e in listed):
            raise ValueError("its documents are larger than those of an export")
        for each in listed:
            try:
                yield _decoder.decode(archive.read(each))
            except msgspec.DecodeError as error:
                raise ValueError(f"{each.filename}: {error}") from None


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
