"""A certificate authority in a folder: what it signs is believed, and what must not happen is refused."""

from __future__ import annotations

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pilotlight_core.host.certificates.authority import (
    CertificateAsk,
    issue_certificate,
    load_authority,
    make_authority,
)
from pilotlight_core.model.errors import BadInput
from tests.core.host.certificates.handshakes import handshake

NOW = datetime(2026, 11, 26, 12, 0, 0, tzinfo=UTC)
GATEWAY = CertificateAsk(name="gw-1", hosts=("gw-1.example.com",), ips=("10.0.0.5", "::1"), server=True)


def context_of(folder: Path, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("name", ["gw-1.example.com", "10.0.0.5", "::1"])
def test_who_trusts_the_authority_believes_a_server_by_each_of_its_names(tmp_path: Path, name: str) -> None:
    """Also where certificates are judged by every rule, as Python does from 3.13 on."""
    make_authority(tmp_path / "ca", at=datetime.now(UTC))
    issue_certificate(tmp_path / "ca", GATEWAY, at=datetime.now(UTC))
    client = ssl.create_default_context(cafile=str(tmp_path / "ca" / "ca.pem"))
    client.verify_flags |= ssl.VERIFY_X509_STRICT

    handshake(context_of(tmp_path / "ca", "gw-1"), client, name)
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        handshake(context_of(tmp_path / "ca", "gw-1"), client, "gw-2.example.com" if "." in name else "::2")


def test_a_certificate_proves_what_it_is_for(tmp_path: Path) -> None:
    """A client's is no server's."""
    make_authority(tmp_path / "ca", at=datetime.now(UTC))
    issue_certificate(tmp_path / "ca", CertificateAsk(name="x", hosts=("x",), client=True), at=datetime.now(UTC))

    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        handshake(
            context_of(tmp_path / "ca", "x"), ssl.create_default_context(cafile=str(tmp_path / "ca" / "ca.pem")), "x"
        )


def test_keys_are_their_owners_alone(tmp_path: Path) -> None:
    """Certificates are for everybody, in a folder that is not."""
    authority = make_authority(tmp_path / "ca", at=NOW)
    issued = issue_certificate(tmp_path / "ca", GATEWAY, at=NOW)

    assert (mode_of(authority.key), mode_of(issued.key), mode_of(tmp_path / "ca")) == (0o600, 0o600, 0o700)
    assert mode_of(issued.certificate) & 0o600 == 0o600


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    """It may be others' too, as /etc/ssl is; the key is its owner's alone all the same."""
    tmp_path.chmod(0o755)
    authority = make_authority(tmp_path, at=NOW)
    assert (mode_of(tmp_path), mode_of(authority.key)) == (0o755, 0o600)


def test_nothing_is_overwritten_unless_it_is_renewed(tmp_path: Path) -> None:
    """An authority never; a certificate with `replace`, which leaves no other file behind."""
    folder = tmp_path / "ca"
    make_authority(folder, at=NOW)
    before = issue_certificate(folder, GATEWAY, at=NOW).certificate.read_bytes()

    with pytest.raises(BadInput, match=r"ca\.key and .*ca\.pem would be overwritten"):
        make_authority(folder, at=NOW)
    with pytest.raises(BadInput, match=r"gw-1\.key and .*gw-1\.pem would be overwritten"):
        issue_certificate(folder, GATEWAY, at=NOW)
    assert (folder / "gw-1.pem").read_bytes() == before

    issue_certificate(folder, GATEWAY, at=NOW, replace=True)
    assert (folder / "gw-1.pem").read_bytes() != before
    assert sorted(path.name for path in folder.iterdir()) == ["ca.key", "ca.pem", "gw-1.key", "gw-1.pem"]


def test_what_an_authority_signs_does_not_outlive_it(tmp_path: Path) -> None:
    """It is refused, with the day on which the authority ends; clocks that are minutes behind see it valid."""
    make_authority(tmp_path, at=NOW, days=10)

    with pytest.raises(BadInput, match="ends on 2026-12-06"):
        issue_certificate(tmp_path, GATEWAY, at=NOW)
    certificate, _ = load_authority(tmp_path)
    assert certificate.not_valid_before_utc == NOW - timedelta(minutes=5)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        ({"name": "../gw", "client": True}, "no name"),
        ({"name": "ca", "client": True}, "no name"),
        ({"name": "gw", "server": True}, "with --host or --ip"),
        ({"name": "gw", "hosts": ("a",)}, "--server, a --client, or both"),
        ({"name": "gw", "hosts": ("https://a",), "server": True}, "no name of a host"),
        ({"name": "gw", "hosts": ("10.0.0.1",), "server": True}, "given with --ip"),
        ({"name": "gw", "ips": ("10.0.0",), "server": True}, "no address"),
    ],
)
def test_what_cannot_be_verified_is_not_made(ask: dict[str, object], says: str) -> None:
    """Refused with what is wrong."""
    with pytest.raises(BadInput, match=says):
        CertificateAsk(**ask)  # type: ignore[arg-type]


def test_a_folder_that_is_no_authority_is_named(tmp_path: Path) -> None:
    """With the command that makes one; a key of another authority is noticed."""
    with pytest.raises(BadInput, match="pilotlight ca init"):
        issue_certificate(tmp_path / "none", GATEWAY, at=NOW)

    make_authority(tmp_path / "a", at=NOW)
    make_authority(tmp_path / "b", at=NOW)
    (tmp_path / "a" / "ca.key").write_bytes((tmp_path / "b" / "ca.key").read_bytes())
    with pytest.raises(BadInput, match="is not the key of"):
        load_authority(tmp_path / "a")
    (tmp_path / "a" / "ca.key").write_bytes(b"nothing")
    with pytest.raises(BadInput, match="cannot be read"):
        load_authority(tmp_path / "a")
