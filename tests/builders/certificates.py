"""Certificates for tests, by an authority of their own."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pilotlight_core.host.certificates.authority import (
    CertificateAsk,
    CertificateFiles,
    issue_certificate,
    make_authority,
)
from pilotlight_core.host.certificates.server_context import TlsFiles

HOSTS, IPS = ("localhost",), ("127.0.0.1",)


def an_authority(folder: Path) -> Path:
    """An authority in `folder`; the file that others are given."""
    return make_authority(folder, at=datetime.now(UTC)).certificate


def a_server(
    folder: Path, name: str = "server", *, host: str = "", age_days: int = 0, days: int = 10, client: bool = True
) -> CertificateFiles:
    """A server's certificate of the authority in `folder`, of loopback or of `host`, which replaces one of the name."""
    hosts, ips = ((host,), ()) if host else (HOSTS, IPS)
    ask = CertificateAsk(name=name, server=True, client=client, days=days, hosts=hosts, ips=ips)
    return issue_certificate(folder, ask, at=datetime.now(UTC) - timedelta(days=age_days), replace=True)


def a_client(folder: Path, name: str, *, age_days: int = 0, days: int = 10) -> CertificateFiles:
    ask = CertificateAsk(name=name, client=True, days=days)
    return issue_certificate(folder, ask, at=datetime.now(UTC) - timedelta(days=age_days), replace=True)


def tls_files(files: CertificateFiles, client_authority: Path | None = None) -> TlsFiles:
    return TlsFiles(certificate=files.certificate, key=files.key, client_authority=client_authority)


def trusting(authority: Path, client: CertificateFiles | None = None) -> ssl.SSLContext:
    """A client's context."""
    context = ssl.create_default_context(cafile=str(authority))
    if client is not None:
        context.load_cert_chain(client.certificate, client.key)
    return context
