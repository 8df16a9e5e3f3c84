"""The operator's file of known vulnerabilities: an export of OSV, for a platform that reaches no such service.

    https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip

It may also be a file with a JSON document in each line, or one with a list of them. Of each document those parts are
kept that say which versions of which package are affected. The file is read when it is first needed, and again when it
has changed; its age is that of its newest entry, whatever its own date.
"""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
import structlog
from packaging.version import InvalidVersion, Version

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.packages.requirement_texts import normal_name
from pilotlight_core.model.supply.findings import VulnerabilityData
from pilotlight_core.model.supply.policies import Severity

ECOSYSTEM = "PyPI"
MOST_BYTES = 2 * 2**30
"""Of all documents: a file that claims more is no export."""
MOST_DOCUMENT = 16 * 2**20
SEVERITY_WORDS = {"LOW": Severity.LOW, "MODERATE": Severity.MODERATE, "MEDIUM": Severity.MODERATE,
                  "HIGH": Severity.HIGH, "CRITICAL": Severity.CRITICAL}  # fmt: skip

log = structlog.get_logger(__name__)


class NoOsvFile(PilotlightError):
    """The file cannot be read, or is none."""

    code = "misconfigured"


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    introduced: str | None = None
    fixed: str | None = None
    last_affected: str | None = None


class _Range(msgspec.Struct, frozen=True, kw_only=True):
    type: str = ""
    events: tuple[_Event, ...] = ()


class _Package(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    ecosystem: str = ""


class _Affected(msgspec.Struct, frozen=True, kw_only=True):
    package: _Package = _Package()
    ranges: tuple[_Range, ...] = ()
    versions: tuple[str, ...] = ()


class _Specific(msgspec.Struct, frozen=True, kw_only=True):
    severity: str | None = None


class _Document(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    modified: str = ""
    withdrawn: str | None = None
    aliases: tuple[str, ...] = ()
    affected: tuple[_Affected, ...] = ()
    database_specific: _Specific | None = None


_decoder = msgspec.json.Decoder(_Document)
_list_decoder = msgspec.json.Decoder(list[_Document])


class KnownVulnerability(NamedTuple):
    """One of a package."""

    id: str
    aliases: tuple[str, ...]
    severity: Severity | None
    """None: its document has none."""
    affected: _Affected

    def affects(self, version: str) -> bool:
        """By its list of versions, else by its ranges; a version that cannot be compared is affected."""
        if version in self.affected.versions:
            return True
        ranges = [each for each in self.affected.ranges if each.type == "ECOSYSTEM"]
        if not ranges:
            return False
        try:
            return any(_is_within(Version(version), each.events) for each in ranges)
        except InvalidVersion:
            return True


class OsvData(NamedTuple):
    """What a file says."""

    known: dict[str, tuple[KnownVulnerability, ...]]
    """By normal name of the package."""
    published_at: float
    entries: int
    sha256: str

    def of(self, name: str, version: str) -> list[KnownVulnerability]:
        """What is known of a version."""
        return [each for each in self.known.get(normal_name(name), ()) if each.affects(version)]

    def about(self, at: float) -> VulnerabilityData:
        return VulnerabilityData(
            published_at=self.published_at, age_s=at - self.published_at, entries=self.entries, sha256=self.sha256
        )


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
                    log.info("known vulnerabilities were read", entries=self._read[1].entries, path=str(self._path))
            except (OSError, zipfile.BadZipFile, msgspec.DecodeError, ValueError) as error:
                raise NoOsvFile(
                    f"The file of known vulnerabilities {self._path} cannot be read: {error}. Expected an export of "
                    "OSV, such as PyPI/all.zip."
                ) from None
            return self._read[1]


def read_osv(path: Path) -> OsvData:
    """Raises OSError, BadZipFile, DecodeError and ValueError."""
    known: dict[str, list[KnownVulnerability]] = {}
    newest, entries = 0.0, 0
    for document in _documents(path):
        newest, entries = max(newest, _seconds(document.modified)), entries + 1
        if document.withdrawn:
            continue
        said = document.database_specific.severity if document.database_specific is not None else None
        severity = SEVERITY_WORDS.get((said or "").upper())
        for each in document.affected:
            if each.package.ecosystem == ECOSYSTEM:
                one = KnownVulnerability(document.id, document.aliases, severity, each)
                known.setdefault(normal_name(each.package.name), []).append(one)
    if not entries:
        raise ValueError("it has no entry")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return OsvData({name: tuple(found) for name, found in known.items()}, newest, entries, digest)


def _documents(path: Path) -> Iterator[_Document]:
    if zipfile.is_zipfile(path):
        yield from _zipped(path)
        return
    with path.open("rb") as file:
        first = file.read(1)
        file.seek(0)
        if first == b"[":
            yield from _list_decoder.decode(file.read(MOST_BYTES))
            return
        for line in file:
            if line.strip():
                yield _decoder.decode(line)


def _zipped(path: Path) -> Iterator[_Document]:
    with zipfile.ZipFile(path) as archive:
        listed = [each for each in archive.infolist() if each.filename.endswith(".json")]
        if sum(each.file_size for each in listed) > MOST_BYTES or any(e.file_size > MOST_DOCUMENT for e in listed):
            raise ValueError("its documents are larger than those of an export")
        for each in listed:
            yield _decoder.decode(archive.read(each))


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def _is_within(version: Version, events: tuple[_Event, ...]) -> bool:
    """Whether a range has the version: its events in order, from `introduced` to `fixed` or `last_affected`."""
    inside = False
    for key, kind in sorted((_point(event), _kind(event)) for event in events):
        if kind == 0 and (key is _START or version >= key):
            inside = True
        elif (kind == 1 and version >= key) or (kind == 2 and version > key):
            inside = False
    return inside


_START = Version("0.dev0")


def _point(event: _Event) -> Version:
    text = event.introduced or event.fixed or event.last_affected or "0"
    return _START if text == "0" else Version(text)


def _kind(event: _Event) -> int:
    return 0 if event.introduced is not None else 1 if event.fixed is not None else 2
