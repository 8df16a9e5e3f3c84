"""Documents of OSV: which versions of which packages have a vulnerability, and how grave it is. Pure.

Several databases tell of the same vulnerability, each by a document with its own id that names the others' as aliases.
Those of one package are one here: a version has it if one of them says so, and it is as grave as the gravest says, in a
word or by a CVSS vector. What a document says in a way that cannot be compared counts against a version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import cvss
import msgspec
from cvss.exceptions import CVSSError
from packaging.version import InvalidVersion, Version

from pilotlight_core.model.supply.policies import SEVERITIES, Severity

ECOSYSTEM = "PyPI"
SEVERITY_WORDS = {"NONE": Severity.LOW, "LOW": Severity.LOW, "MODERATE": Severity.MODERATE, "MEDIUM": Severity.MODERATE,
                  "HIGH": Severity.HIGH, "CRITICAL": Severity.CRITICAL}  # fmt: skip
LEAST_SCORES = ((9.0, Severity.CRITICAL), (7.0, Severity.HIGH), (4.0, Severity.MODERATE))
"""Of CVSS 3 and 4; what is below all of them is low. CVSS 2 has no word for critical, and its scores count alike."""
VECTORS: dict[str, Callable[[str], Any]] = {"CVSS_V2": cvss.CVSS2, "CVSS_V3": cvss.CVSS3, "CVSS_V4": cvss.CVSS4}
VECTOR_LENGTH = 512


class OsvEvent(msgspec.Struct, frozen=True, kw_only=True):
    introduced: str | None = None
    fixed: str | None = None
    last_affected: str | None = None


class OsvRange(msgspec.Struct, frozen=True, kw_only=True):
    type: str = ""
    events: tuple[OsvEvent, ...] = ()


class OsvPackage(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    ecosystem: str = ""


class OsvRating(msgspec.Struct, frozen=True, kw_only=True):
    type: str = ""
    score: str = ""


class OsvAffected(msgspec.Struct, frozen=True, kw_only=True):
    package: OsvPackage | None = None
    ranges: tuple[OsvRange, ...] = ()
    versions: tuple[str, ...] = ()
    severity: tuple[OsvRating, ...] = ()

    @property
    def is_ours(self) -> bool:
        """Whether it is about a package of the index."""
        return self.package is not None and self.package.ecosystem.partition(":")[0] == ECOSYSTEM

    def has(self, version: str) -> bool:
        """Whether a version is affected: by the list, or by one of the ranges.

        A local part is left out: what was built otherwise, as `2.1.0+cu121`, has the faults of its version.
        """
        if version in self.versions:
            return True
        ranges = [each for each in self.ranges if each.type != "GIT"]
        if not self.versions and not ranges:
            return True  # commits alone say nothing of versions
        try:
            wanted = Version(Version(version).public)
        except InvalidVersion:
            return True
        return any(map(wanted.__eq__, _readable(self.versions))) or any(is_within(wanted, each) for each in ranges)


class OsvDocument(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    modified: str = ""
    withdrawn: str | None = None
    aliases: tuple[str, ...] = ()
    severity: tuple[OsvRating, ...] = ()
    affected: tuple[OsvAffected, ...] = ()
    database_specific: Any = None
    """Each database's own: only a `severity` that is a word is looked at."""

    @property
    def word(self) -> str:
        said = self.database_specific.get("severity") if isinstance(self.database_specific, dict) else None
        return said if isinstance(said, str) else ""


class KnownVulnerability(NamedTuple):
    """One of a package, by all documents about it."""

    id: str
    aliases: tuple[str, ...] = ()
    """Its other names; a CVE's first."""
    ratings: tuple[tuple[str, str], ...] = ()
    """What documents say of how grave it is: a kind of vector and the vector, or "" and a word."""
    affected: tuple[OsvAffected, ...] = ()

    @property
    def severity(self) -> Severity | None:
        """The gravest that is said; None: nothing is, or nothing that can be read."""
        found = [grave for kind, text in self.ratings if (grave := severity_of(kind, text)) is not None]
        return max(found, key=SEVERITIES.index, default=None)

    def affects(self, version: str) -> bool:
        return any(each.has(version) for each in self.affected)


def vulnerabilities_in(document: OsvDocument) -> Iterator[tuple[str, KnownVulnerability]]:
    """By the name of the package, what a document says of packages of the index."""
    for each in document.affected:
        if each.is_ours and each.package is not None:
            rated = [(one.type, one.score) for one in (*document.severity, *each.severity)]
            ratings = (*(("", word) for word in (document.word,) if word), *rated)
            yield each.package.name, KnownVulnerability(document.id, document.aliases, ratings, (each,))


def merged(found: Iterable[KnownVulnerability]) -> tuple[KnownVulnerability, ...]:
    """Those of one package, each once: what shares a name is one."""
    groups: list[tuple[set[str], list[KnownVulnerability]]] = []
    for one in found:
        names, members = {one.id, *one.aliases}, [one]
        for group in [group for group in groups if group[0] & names]:
            names |= group[0]
            members = [*group[1], *members]
            groups.remove(group)
        groups.append((names, members))
    return tuple(_one(names, members) for names, members in groups)


def _one(names: set[str], members: list[KnownVulnerability]) -> KnownVulnerability:
    first = min(each.id for each in members)  # GHSA before PYSEC, and the same however the file is ordered
    others = sorted(names - {first}, key=lambda name: (not name.startswith("CVE-"), name))
    ratings = tuple(dict.fromkeys(each for member in members for each in member.ratings))
    return KnownVulnerability(
        first, tuple(others), ratings, tuple(each for member in members for each in member.affected)
    )


@lru_cache(maxsize=8_192)
def severity_of(kind: str, text: str) -> Severity | None:
    """How grave a vector or a word says that a vulnerability is; None: it says nothing that can be read."""
    read = VECTORS.get(kind)
    if read is None:
        return SEVERITY_WORDS.get(text.upper())
    if len(text) > VECTOR_LENGTH:
        return None
    try:
        score = float(read(text).base_score)
    except (CVSSError, ArithmeticError, LookupError, ValueError):
        return None
    return next((grave for least, grave in LEAST_SCORES if score >= least), Severity.LOW)


def is_within(version: Version, of: OsvRange) -> bool:
    """Whether a range has a version: its events in order, from `introduced` to `fixed` or `last_affected`.

    One with an event that cannot be compared has every version.
    """
    try:
        points = sorted((_point(text), kind) for event in of.events for kind, text in _turns(event))
    except InvalidVersion:
        return True
    inside = False
    for key, kind in points:
        if kind == 0 and (key is _START or version >= key):
            inside = True
        elif (kind == 1 and version >= key) or (kind == 2 and version > key):
            inside = False
    return inside


_START = Version("0.dev0")


def _turns(event: OsvEvent) -> Iterator[tuple[int, str]]:
    """What an event says: 0 and where it begins, 1 and what is the first without, 2 and what is the last with it."""
    for kind, text in enumerate((event.introduced, event.fixed, event.last_affected)):
        if text is not None:
            yield kind, text


def _point(text: str) -> Version:
    return _START if text == "0" else Version(text)


def _readable(versions: Iterable[str]) -> Iterator[Version]:
    for each in versions:
        try:
            yield Version(each)
        except InvalidVersion:
            continue
