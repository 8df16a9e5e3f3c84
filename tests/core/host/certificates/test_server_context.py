"""What a listener serves TLS with: checked at the start, and read anew when files change."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path, PosixPath

import pytest
from cryptography.hazmat.primitives import serialization
from structlog.testing import capture_logs

from pilotlight_core.host.certificates.server_context import SOON, ServerContext, TlsFiles, read_context
from pilotlight_core.model.errors import BadInput
from tests.builders.certificates import a_client, a_server, an_authority, tls_files, trusting
from tests.core.host.certificates.handshakes import handshake, serial_of
from tests.waiting import until


@pytest.fixture
def now() -> datetime:
    """When the test begins: certificates that it makes are valid from a little before."""
    return datetime.now(UTC)


def test_new_connections_get_what_was_read_last(tmp_path: Path, now: datetime) -> None:
    """One that began before goes on with what it has; nothing is read while nothing changes."""
    trusted = trusting(an_authority(tmp_path))
    context = ServerContext(tls_files(a_server(tmp_path)), now)
    before, other_end = handshake(context, trusted, "localhost")
    assert not context.refresh(now)

    a_server(tmp_path)
    assert context.refresh(now)
    assert not context.refresh(now)

    after, _ = handshake(context, trusted, "localhost")
    assert serial_of(after) != serial_of(before)
    other_end.write(b"still here")
    assert before.read(100) == b"still here"


def test_a_name_that_leads_to_other_files_is_a_change(tmp_path: Path, now: datetime) -> None:
    """As secrets of Kubernetes are: links that are put in place of others."""
    an_authority(tmp_path / "ca")
    for name in ("one", "two"):
        made, folder = a_server(tmp_path / "ca", name), tmp_path / name
        folder.mkdir()
        made.certificate.rename(folder / "tls.crt")
        made.key.rename(folder / "tls.key")
    link = tmp_path / "now"
    link.symlink_to(tmp_path / "one")
    context = ServerContext(TlsFiles(certificate=link / "tls.crt", key=link / "tls.key"), now)

    (tmp_path / "next").symlink_to(tmp_path / "two")
    (tmp_path / "next").rename(link)

    assert context.refresh(now)


def test_what_cannot_be_used_leaves_what_was(tmp_path: Path, now: datetime) -> None:
    """A certificate without its key, one that has expired, none at all: until there is one."""
    trusted, files = trusting(an_authority(tmp_path)), a_server(tmp_path)
    context = ServerContext(tls_files(files), now)
    first, _ = handshake(context, trusted, "localhost")
    other = a_server(tmp_path, "other")

    files.certificate.write_bytes(other.certificate.read_bytes())
    assert not context.refresh(now)
    assert serial_of(handshake(context, trusted, "localhost")[0]) == serial_of(first)

    files.certificate.unlink()
    assert not context.refresh(now)
    a_server(tmp_path, age_days=20)
    assert not context.refresh(now)
    assert serial_of(handshake(context, trusted, "localhost")[0]) == serial_of(first)

    a_server(tmp_path)
    assert context.refresh(now)


def test_what_could_not_be_used_is_tried_again(tmp_path: Path, now: datetime) -> None:
    """A clock that was behind, a folder that was closed for a moment: the same files in their time. Said once."""
    an_authority(tmp_path)
    context = ServerContext(tls_files(a_server(tmp_path)), now)
    a_server(tmp_path, age_days=-1)

    with capture_logs() as lines:
        for second in range(3):
            assert not context.refresh(now + timedelta(seconds=second))
        assert [line["event"] for line in lines] == ["the new certificate cannot be used"]
        assert "is valid from" in lines[0]["error"]
        assert context.refresh(now + timedelta(days=1))
    assert context.expires > now + timedelta(days=10)


def test_that_the_certificate_ends_soon_is_said_once_a_day(tmp_path: Path, now: datetime) -> None:
    """Also while what is to come after it cannot be used."""
    an_authority(tmp_path)
    files = a_server(tmp_path, days=30)
    context = ServerContext(tls_files(files), now)
    soon = now + timedelta(days=31) - SOON

    with capture_logs() as lines:
        context.refresh(now + timedelta(days=2))
        assert lines == []
        for hours in (0, 12, 24, 25):
            context.refresh(soon + timedelta(hours=hours))
        assert [line["event"] for line in lines] == ["the certificate in use ends soon"] * 2
        lines.clear()
        files.key.unlink()
        context.refresh(now + timedelta(days=31))
        said = {line["event"]: line["log_level"] for line in lines}
    assert said == {"the new certificate cannot be used": "error", "the certificate in use has ended": "warning"}


async def test_no_renewal_ends_the_watch(tmp_path: Path, now: datetime) -> None:
    """Whatever reading it raises; what is there is taken once it can be read."""
    an_authority(tmp_path)
    files = a_server(tmp_path, days=5)
    certificate = UneasyPath(files.certificate)
    context = ServerContext(TlsFiles(certificate=certificate, key=files.key), now)
    before = context.expires
    certificate.fails = True
    a_server(tmp_path)

    with capture_logs() as lines:
        watching = asyncio.ensure_future(context.watch(every_s=0.01))
        await until(lambda: bool(lines) or watching.done())
    assert not watching.done()
    assert [(line["event"], line["error"]) for line in lines] == [
        ("the new certificate cannot be used", "MemoryError()")
    ]
    certificate.fails = False
    await until(lambda: context.expires > before)
    watching.cancel()


class UneasyPath(PosixPath):
    """Cannot be read, for a reason of its own."""

    fails = False

    def read_bytes(self) -> bytes:
        if self.fails:
            raise MemoryError
        return bytes(super().read_bytes())


def test_the_first_ones_are_checked(tmp_path: Path, now: datetime) -> None:
    """Each error names the setting, the file, and what is wrong with it."""
    an_authority(tmp_path)
    files, other = tls_files(a_server(tmp_path)), a_server(tmp_path, "other")
    missing, text = tmp_path / "none", tmp_path / "text"
    text.write_text("nothing")
    wrong = {
        TlsFiles(
            certificate=missing, key=files.key
        ): f"--tls-cert: {missing} cannot be read: No such file or directory.",
        TlsFiles(certificate=files.certificate, key=missing, setting="--internal-tls"): (
            f"--internal-tls-key: {missing} cannot be read: No such file or directory."
        ),
        TlsFiles(certificate=text, key=files.key): f"--tls-cert: {text} is no certificate (PEM).",
        TlsFiles(certificate=files.certificate, key=text): f"--tls-key: {text} is no private key without a password",
        TlsFiles(certificate=files.certificate, key=other.key): (
            f"--tls-key: {other.key} is not the key of {files.certificate}."
        ),
        TlsFiles(certificate=files.certificate, key=files.key, client_authority=text): (
            f"--tls-client-ca: {text} has no certificates of authorities (PEM)."
        ),
    }

    for each, says in wrong.items():
        with pytest.raises(BadInput) as caught:
            read_context(each, now)
        assert caught.value.detail.startswith(says)
    with pytest.raises(BadInput, match="has expired on"):
        read_context(files, now + timedelta(days=11))
    with pytest.raises(BadInput, match="is valid from"):
        read_context(files, now - timedelta(days=1))
    with pytest.raises(BadInput, match=r"--tls-cert: .*reports\.pem is not for servers"):
        read_context(tls_files(a_client(tmp_path, "reports")), now)


def test_a_key_with_a_password_is_refused_and_nobody_is_asked_for_it(tmp_path: Path, now: datetime) -> None:
    """A process has no terminal."""
    an_authority(tmp_path)
    files = a_server(tmp_path)
    key = serialization.load_pem_private_key(files.key.read_bytes(), password=None)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )

    with pytest.raises(BadInput, match="without a password"):
        read_context(tls_files(files), now)


def test_clients_may_show_a_certificate_of_the_authority_that_is_named(tmp_path: Path, now: datetime) -> None:
    """Or none; one of another authority, or one that has expired, ends the handshake."""
    authority, _ = an_authority(tmp_path / "a"), an_authority(tmp_path / "b")
    context = ServerContext(tls_files(a_server(tmp_path / "a"), authority), now)

    good, none = a_client(tmp_path / "a", "reports"), None
    for shown, subject in ((good, "reports"), (none, None)):
        _, there = handshake(context, trusting(authority, shown), "localhost")
        found = there.getpeercert()
        assert (((("commonName", subject),),) == found["subject"]) if found else (subject is None)

    for bad in (a_client(tmp_path / "b", "reports"), a_client(tmp_path / "a", "late", age_days=20)):
        with pytest.raises(ssl.SSLError, match=r"certificate verify failed|certificate has expired|unknown ca"):
            handshake(context, trusting(authority, bad), "localhost")


async def test_files_are_looked_at_again_and_again(tmp_path: Path, now: datetime) -> None:
    """Until the watch is ended."""
    an_authority(tmp_path)
    context = ServerContext(tls_files(a_server(tmp_path, days=5)), now)
    before = context.expires
    watching = asyncio.ensure_future(context.watch(every_s=0.01))
    a_server(tmp_path)

    await until(lambda: context.expires > before)
    watching.cancel()
