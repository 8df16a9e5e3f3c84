"""A document of OSV says which versions it is about and how grave it is; what cannot be read counts against them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.supply.policies import Severity
from pilotlight_gateway.supply.osv_documents import (
    KnownVulnerability,
    OsvAffected,
    OsvDocument,
    merged,
    severity_of,
    vulnerabilities_in,
)

CRITICAL = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"
LOW = "CVSS:3.0/AV:P/AC:H/PR:H/UI:R/S:U/C:L/I:N/A:N"


@pytest.mark.parametrize(
    ("kind", "text", "severity"),
    [
        ("CVSS_V3", CRITICAL, Severity.CRITICAL),
        ("CVSS_V3", "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H", Severity.HIGH),
        ("CVSS_V3", "CVSS:3.0/AV:N/AC:H/PR:N/UI:R/S:U/C:H/I:N/A:N", Severity.MODERATE),
        ("CVSS_V3", LOW, Severity.LOW),
        ("CVSS_V3", "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N", Severity.LOW),
        ("CVSS_V4", "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N", Severity.CRITICAL),
        ("CVSS_V4", "CVSS:4.0/AV:L/AC:H/AT:P/PR:H/UI:A/VC:L/VI:N/VA:N/SC:N/SI:N/SA:N", Severity.LOW),
        ("CVSS_V2", "AV:N/AC:L/Au:N/C:P/I:P/A:P", Severity.HIGH),
        ("", "moderate", Severity.MODERATE),
        ("Ubuntu", "medium", Severity.MODERATE),
        ("", "dreadful", None),
        ("CVSS_V3", "CVSS:3.1/AV:N", None),
        ("CVSS_V3", "CVSS:4.0/AV:N", None),
        ("CVSS_V4", CRITICAL, None),
        ("CVSS_V3", "9.8", None),
        ("CVSS_V3", CRITICAL + "/E:X" * 200, None),
    ],
)
def test_vectors_and_words_say_how_grave_it_is(kind: str, text: str, severity: Severity | None) -> None:
    """By the scores of CVSS 2 to 4; what cannot be read says nothing, which is not that it is harmless."""
    assert severity_of(kind, text) is severity


def test_the_gravest_of_what_is_said_counts() -> None:
    """A word below the score of a vector, a package's own vector, and one that cannot be read beside others."""
    low, high = {"type": "CVSS_V3", "score": LOW}, {"type": "CVSS_V3", "score": CRITICAL}

    def grave(**said: Any) -> Severity | None:
        own = {"package": {"name": "p", "ecosystem": "PyPI:x"}, "severity": said.pop("own", [])}
        document = msgspec.convert({"id": "A", "affected": [own]} | said, OsvDocument)
        ((name, found),) = vulnerabilities_in(document)
        assert name == "p"
        return found.severity

    assert grave(severity=[low, high]) is Severity.CRITICAL
    assert grave(severity=[low], database_specific={"severity": "HIGH"}) is Severity.HIGH
    assert grave(severity=[high], database_specific={"severity": "LOW"}) is Severity.CRITICAL
    assert grave(severity=[low], own=[high]) is Severity.CRITICAL
    assert grave(severity=[{"type": "CVSS_V3", "score": "?"}, low]) is Severity.LOW
    for nothing in ({}, {"database_specific": {"severity": ["HIGH"]}}, {"database_specific": "HIGH"}):
        assert grave(**nothing) is None


def affected(*events: dict[str, str], versions: tuple[str, ...] = (), kind: str = "ECOSYSTEM") -> OsvAffected:
    ranges = [{"type": kind, "events": events}] if events else []
    return msgspec.convert({"ranges": ranges, "versions": versions}, OsvAffected)


@pytest.mark.parametrize(
    ("said", "within", "without"),
    [
        (affected({"introduced": "0"}, {"fixed": "1.5"}), ("0.1.dev1", "1.4.9", "1.5rc1"), ("1.5", "2.0")),
        (affected({"introduced": "1.0"}, {"last_affected": "1.5"}), ("1.0", "1.5", "1.5+cu121"), ("0.9", "1.5.1")),
        (
            affected({"fixed": "2.1"}, {"introduced": "2.0"}, {"introduced": "0"}, {"fixed": "1"}),
            ("0.5", "2.0"), ("1", "2.1"),
        ),
        (affected({"introduced": "1.0", "fixed": "1.5"}), ("1.0",), ("1.5",)),
        (affected({"introduced": "0"}, {"fixed": "1.5"}, versions=("3.0",)), ("1.0", "3.0", "3.0.0"), ("2.0",)),
        (affected(versions=("2.1.0", "nonsense")), ("2.1", "2.1.0+cu121", "nonsense"), ("2.1.1", "2.1.0.post1")),
        (affected({"introduced": "0"}, {"fixed": "nonsense"}), ("9.9",), ()),
        (affected({"introduced": "0"}, {"fixed": "abcdef"}, kind="GIT"), ("9.9",), ()),
        (affected({"introduced": "0"}, {"fixed": "abcdef"}, kind="GIT", versions=("1.0",)), ("1.0",), ("9.9",)),
        (affected(), ("1.0",), ()),
    ],
)  # fmt: skip
def test_versions_are_affected_by_lists_and_ranges(
    said: OsvAffected, within: tuple[str, ...], without: tuple[str, ...]
) -> None:
    """As versions of Python packages compare; a build of another kind has the faults of its version."""
    assert {version for version in (*within, *without) if said.has(version)} == {*within}


def test_documents_that_share_a_name_are_one_whatever_their_order() -> None:
    """Also over a third one; and others stay apart."""
    three = [
        KnownVulnerability("PYSEC-1", ("CVE-1",)), KnownVulnerability("GHSA-2", ("CVE-2",)),
        KnownVulnerability("GHSA-1", ("X-1",)), KnownVulnerability("OSV-1", ("GHSA-1", "CVE-1")),
    ]  # fmt: skip
    for order in (three, three[::-1]):
        found = sorted(merged(order))
        assert [(one.id, one.aliases) for one in found] == [
            ("GHSA-1", ("CVE-1", "OSV-1", "PYSEC-1", "X-1")), ("GHSA-2", ("CVE-2",)),
        ]  # fmt: skip
