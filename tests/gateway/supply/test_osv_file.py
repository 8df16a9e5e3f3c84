"""What is known of vulnerabilities is what an export of OSV says, by its own age."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.model.supply.policies import Severity
from pilotlight_gateway.supply.osv_file import NoOsvFile, OsvFile, read_osv

YAML: dict[str, Any] = {
    "id": "GHSA-8q59-q68h-6hv4", "modified": "2026-09-20T10:00:00Z", "aliases": ["CVE-2020-14343"],
    "database_specific": {"severity": "CRITICAL"},
    "affected": [
        {
            "package": {"name": "PyYAML", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "5.4"}]}],
            "versions": ["3.13", "5.3", "5.3.1"],
        },
        {"package": {"name": "pyyaml", "ecosystem": "npm"}, "versions": ["6.0"]},
    ],
}  # fmt: skip
TWICE: dict[str, Any] = {
    "id": "PYSEC-1", "modified": "2026-09-01T00:00:00Z",
    "affected": [
        {
            "package": {"name": "twice", "ecosystem": "PyPI"},
            "ranges": [
                {"type": "ECOSYSTEM", "events": [
                    {"introduced": "1.0"}, {"fixed": "1.5"}, {"introduced": "2.0"}, {"last_affected": "2.3"},
                ]},
                {"type": "GIT", "events": [{"introduced": "0"}]},
            ],
        }
    ],
}  # fmt: skip
FOREIGN: dict[str, Any] = {
    "id": "GHSA-npm", "modified": "2026-11-01T00:00:00Z", "affected": [
        {"package": {"name": "twice", "ecosystem": "npm"}, "versions": ["1.0"]}, {"versions": ["1.0"]},
    ],
}  # fmt: skip
GONE = TWICE | {"id": "PYSEC-2", "withdrawn": "2026-01-01T00:00:00Z"}


def export(path: Path, *documents: dict[str, Any]) -> Path:
    """As OSV offers it."""
    with zipfile.ZipFile(path, "w") as archive:
        for each in documents:
            archive.writestr(f"{each['id']}.json", json.dumps(each))
    return path


def lines(path: Path, *documents: dict[str, Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, documents)) + "\n\n")
    return path


def listed(path: Path, *documents: dict[str, Any]) -> Path:
    path.write_text(json.dumps(documents))
    return path


@pytest.mark.parametrize("write", [export, lines, listed])
def test_versions_are_affected_as_the_documents_say(tmp_path: Path, write: Any) -> None:
    """By the list, or by the events of a range; what was withdrawn says nothing, and what is npm's is counted."""
    data = read_osv(write(tmp_path / "osv", YAML, TWICE, GONE, FOREIGN))

    (found,) = data.of("py-yaml".replace("-", ""), "5.3")
    assert (found.id, found.aliases, found.severity) == (YAML["id"], ("CVE-2020-14343",), Severity.CRITICAL)
    assert [bool(data.of("pyyaml", version)) for version in ("3.13", "4.2b1", "5.4", "6.0", "nonsense")] == [
        True, True, False, False, True,
    ]  # fmt: skip
    affected = [bool(data.of("Twice", version)) for version in ("0.9", "1.0", "1.4.9", "1.5", "2.0", "2.3", "2.3.1")]
    assert affected == [False, True, True, False, True, True, False]
    assert data.of("twice", "1.1")[0].severity is None
    told = data.about(data.published_at + 60)
    assert (told.entries, told.foreign, told.age_s) == (3, 1, 60.0)


def test_the_file_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    """And no file is no error, but a missing one is."""
    path = export(tmp_path / "all.zip", TWICE)
    file = OsvFile(path)
    first = file.data()
    assert first is not None
    assert file.data() is first

    export(path, YAML)
    os.utime(path, ns=(1, 1))
    again = file.data()

    assert again is not None
    assert again.published_at > first.published_at
    assert OsvFile().data() is None
    path.unlink()
    with pytest.raises(NoOsvFile, match=r"all\.zip cannot be read"):
        file.data()


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"[1]", b"PK\x03\x04", b'{"no": "id"}\n', json.dumps(FOREIGN).encode(),
        b'{"id": "x", "database_specific": ' + b"[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_export_is_refused(tmp_path: Path, content: bytes) -> None:
    """An empty one too, and another ecosystem's: nothing known is not the same as nothing wrong."""
    path = tmp_path / "osv"
    path.write_bytes(content)
    with pytest.raises(NoOsvFile, match="Expected an export of OSV"):
        OsvFile(path).data()


def test_a_document_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """The file is refused for it: what one document says might be what matters."""
    with pytest.raises(NoOsvFile, match=r"cannot be read: PYSEC-9\.json: Expected `array`"):
        OsvFile(export(tmp_path / "all.zip", TWICE, {"id": "PYSEC-9", "affected": "all"})).data()


def test_an_archive_that_claims_too_much_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator's file, and still bounded."""
    monkeypatch.setattr("pilotlight_gateway.supply.osv_file.MOST_DOCUMENT", 10)
    with pytest.raises(NoOsvFile, match="larger than those of an export"):
        OsvFile(export(tmp_path / "all.zip", TWICE)).data()
    with pytest.raises(NoOsvFile, match="larger than those of an export"):
        OsvFile(lines(tmp_path / "lines", TWICE)).data()


def test_two_databases_tell_of_one_vulnerability_once(tmp_path: Path) -> None:
    """It is as grave as one of them says, and a version has it if one says so."""
    other = TWICE | {"aliases": ["CVE-1", "GHSA-1"]}
    vectors = [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}]
    affected = [{"package": {"name": "Twice", "ecosystem": "PyPI"}, "versions": ["9.0"]}]
    rated = {"id": "GHSA-1", "aliases": ["CVE-1"], "severity": vectors, "affected": affected}
    data = read_osv(export(tmp_path / "all.zip", other, rated))

    for version in ("1.1", "9.0"):
        (found,) = data.of("twice", version)
        assert (found.id, found.aliases, found.severity) == ("GHSA-1", ("CVE-1", "PYSEC-1"), Severity.CRITICAL)
    assert not data.of("twice", "8.0")
