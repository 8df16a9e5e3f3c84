"""A certificate authority in a folder, for a platform whose operator has none: `pilotlight ca`.

`ca.pem` is given to every process and client; `ca.key` never leaves the folder, which belongs on none of the
platform's hosts. Keys are ECDSA P-256, which every TLS library of the platform's parts has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pilotlight_core.host.file_permissions import OWNER_ONLY
from pilotlight_core.model.errors import BadInput

AUTHORITY_CERTIFICATE, AUTHORITY_KEY = "ca.pem", "ca.key"
AUTHORITY_DAYS, CERTIFICATE_DAYS = 3650, 365
CLOCK_SLACK = timedelta(minutes=5)
"""How far the clock of who verifies may be behind that of who signs."""
HOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
HOST_NAME = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*", re.I)
NOBODY_ELSE, EVERYBODY = 0o600, 0o644


@dataclass(frozen=True, kw_only=True)
class CertificateAsk:
    """What a certificate shall say."""

    name: str
    """Its holder: the subject's common name, and the name of its files."""
    hosts: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    server: bool = False
    client: bool = False
    days: int = CERTIFICATE_DAYS

    def __post_init__(self) -> None:
        if not HOLDER_NAME.fullmatch(self.name) or self.name == "ca":
            raise BadInput(f"{self.name!r} is no name: 1 to 63 letters, digits, '.', '_' or '-', and not 'ca'.")
        if not (self.server or self.client):
            raise BadInput("A certificate is for a --server, a --client, or both.")
        if self.server and not (self.hosts or self.ips):
            raise BadInput("Clients verify the name of a server: say each by which it is reached, with --host or --ip.")
        for host in self.hosts:
            if len(host) > 253 or not HOST_NAME.fullmatch(host) or _is_address(host):
                raise BadInput(f"--host: {host!r} is no name of a host; addresses are given with --ip.")
        for address in self.ips:
            if not _is_address(address):
                raise BadInput(f"--ip: {address!r} is no address.")


@dataclass(frozen=True, kw_only=True)
class CertificateFiles:
    certificate: Path
    key: Path
    expires: datetime


def make_authority(
    folder: Path, *, at: datetime, name: str = "Pilotlight CA", days: int = AUTHORITY_DAYS
) -> CertificateFiles:
    """Make an authority in `folder`, which is created for its owner alone; one that is there is left as it is.

    Raises:
        BadInput: there is one.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=OWNER_ONLY, exist_ok=True)
    files = CertificateFiles(
        certificate=folder / AUTHORITY_CERTIFICATE,
        key=folder / AUTHORITY_KEY,
        expires=_seconds(at + timedelta(days=days)),
    )
    key = ec.generate_private_key(ec.SECP256R1())
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = _usage(signs=True)
    made = (
        _begin(own, own, key.public_key(), at, files.expires)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, SHA256())
    )
    _write(files, key, made, replace=False)
    return files


def renewal_of(folder: Path, name: str, *, days: int) -> CertificateAsk | None:
    """What the certificate of that name in `folder` says, for its successor; None: there is none.

    Raises:
        BadInput: it cannot be read.
    """
    path = folder / f"{name}.pem"
    if not HOLDER_NAME.fullmatch(name) or not path.exists():
        return None
    try:
        extensions = x509.load_pem_x509_certificate(path.read_bytes()).extensions
        values = [each.value for each in extensions]
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}, which would be replaced, cannot be read: {error}.") from error
    names = [name for each in values if isinstance(each, x509.SubjectAlternativeName) for name in each]
    uses = [use for each in values if isinstance(each, x509.ExtendedKeyUsage) for use in each]
    return CertificateAsk(
        name=name,
        hosts=tuple(each.value for each in names if isinstance(each, x509.DNSName)),
        ips=tuple(str(each.value) for each in names if isinstance(each, x509.IPAddress)),
        server=ExtendedKeyUsageOID.SERVER_AUTH in uses,
        client=ExtendedKeyUsageOID.CLIENT_AUTH in uses,
        days=days,
    )


def issue_certificate(folder: Path, ask: CertificateAsk, *, at: datetime, replace: bool = False) -> CertificateFiles:
    """Write a key and a certificate, signed by the authority in `folder`, beside it.

    Args:
        replace: those that are there, as to renew them.

    Raises:
        BadInput: there is no authority, it ends before the certificate would, or there are such files.
    """
    authority, signing = load_authority(folder)
    expires = _seconds(at + timedelta(days=ask.days))
    if expires > authority.not_valid_after_utc:
        last = authority.not_valid_after_utc.date()
        raise BadInput(f"The authority in {folder} ends on {last}: fewer --days, or a new authority.")
    files = CertificateFiles(certificate=folder / f"{ask.name}.pem", key=folder / f"{ask.name}.key", expires=expires)
    key = ec.generate_private_key(ec.SECP256R1())
    uses = [ExtendedKeyUsageOID.SERVER_AUTH] * ask.server + [ExtendedKeyUsageOID.CLIENT_AUTH] * ask.client
    names = [*map(x509.DNSName, ask.hosts), *(x509.IPAddress(ip_address(each)) for each in ask.ips)]
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, ask.name)])
    builder = (
        _begin(subject, authority.subject, key.public_key(), at, expires)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()),
            critical=False,
        )
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    _write(files, key, builder.sign(signing, SHA256()), replace=replace)
    return files


def load_authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Its certificate and its key.

    Raises:
        BadInput: there is none.
    """
    try:
        certificate = x509.load_pem_x509_certificate((folder / AUTHORITY_CERTIFICATE).read_bytes())
        key = load_pem_private_key((folder / AUTHORITY_KEY).read_bytes(), password=None)
    except FileNotFoundError as error:
        raise BadInput(f"There is no authority in {folder}: 'pilotlight ca init {folder}' makes one.") from error
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(f"The authority in {folder} cannot be read: {error}.") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise BadInput(f"{folder / AUTHORITY_KEY} is not the key of {folder / AUTHORITY_CERTIFICATE}.")
    return certificate, key


def _begin(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, at: datetime, expires: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_seconds(at) - CLOCK_SLACK)
        .not_valid_after(expires)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write(
    files: CertificateFiles, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate, *, replace: bool
) -> None:
    texts: Sequence[tuple[Path, bytes, int]] = (
        (files.key, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), NOBODY_ELSE),
        (files.certificate, certificate.public_bytes(Encoding.PEM), EVERYBODY),
    )
    if not replace and (there := [str(path) for path, _, _ in texts if path.exists()]):
        how = "" if files.certificate.name == AUTHORITY_CERTIFICATE else " --replace renews them."
        raise BadInput(f"{' and '.join(there)} would be overwritten.{how}")
    for path, text, mode in texts:
        fresh = path.with_name(f".{path.name}.new")
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
            file.write(text)
        fresh.replace(path)


def _seconds(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(microsecond=0)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
