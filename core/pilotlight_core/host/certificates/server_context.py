"""What a listener serves TLS with: checked at the start, and read again when its files change.

Connections keep what they began with; new ones get what was read last. What is there and cannot be used is logged once
and tried again and again, and the listener goes on with what it had.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import structlog

from pilotlight_core.model.errors import BadInput
from pilotlight_core.trusted_context import FileStamp, file_stamp

READ_EVERY_S = 5.0
SOON, WARN_EVERY = timedelta(days=14), timedelta(days=1)
Stamp = tuple[FileStamp, ...]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class TlsFiles:
    """Where a listener's certificate is, and the setting that said so, for errors."""

    certificate: Path
    """PEM: the listener's own first, then those between it and its authority."""
    key: Path
    client_authority: Path | None = None
    """PEM: authorities of clients' certificates; None: clients are not asked for one."""
    setting: str = "--tls"

    def stamp(self) -> Stamp:
        """What changes with the files, or with what their names lead to."""
        return tuple(
            file_stamp(path) for path in (self.certificate, self.key, self.client_authority) if path is not None
        )


class ServerContext(ssl.SSLContext):
    """A context whose new connections are of the context that was read last: event loops call `wrap_bio` for each."""

    def __new__(cls, files: TlsFiles, at: datetime) -> ServerContext:  # noqa: ARG004 - of __init__
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, files: TlsFiles, at: datetime) -> None:
        self._files = files
        self._stamp = files.stamp()
        self._current, self.expires = read_context(files, at)
        self._failure: tuple[Stamp, str] | None = None
        """What kept the files that are there from being used, once it was logged."""
        self._warned_at = at
        """When it was last said that the certificate ends soon; or it was not yet to be said."""
        self._log("serves TLS", at)

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        return self._current.wrap_bio(*args, **kwargs)

    def refresh(self, at: datetime) -> bool:
        """Read the files if they are not those in use; whether connections get others from now on."""
        if (stamp := self._files.stamp()) == self._stamp:
            self._failure = None
            self._warn_of_end(at)
            return False
        try:
            self._current, self.expires = read_context(self._files, at)
        except Exception as error:  # noqa: BLE001 - whatever it is, the listener has one that it can serve with
            self._note_failure(stamp, error.detail if isinstance(error, BadInput) else repr(error))
            self._warn_of_end(at)
            return False
        self._stamp, self._failure = stamp, None
        self._log("serves TLS with another certificate", at)
        return True

    async def watch(self, every_s: float = READ_EVERY_S) -> None:
        """Refresh it for ever."""
        while True:
            await asyncio.sleep(every_s)
            try:
                await asyncio.to_thread(self.refresh, datetime.now(UTC))
            except Exception as error:  # noqa: BLE001 - no thread could be started, for example
                self._note_failure((), repr(error))

    def _note_failure(self, stamp: Stamp, problem: str) -> None:
        if (stamp, problem) != self._failure:  # also while a certificate is there, and its key not yet
            log.error("the new certificate cannot be used", error=problem, until=self.expires.isoformat())
            self._failure = stamp, problem

    def _warn_of_end(self, at: datetime) -> None:
        if self.expires - at < SOON and at - self._warned_at >= WARN_EVERY:
            self._log(
                "the certificate in use has ended" if at > self.expires else "the certificate in use ends soon", at
            )

    def _log(self, event: str, at: datetime) -> None:
        told = {"certificate": str(self._files.certificate), "expires": self.expires.isoformat()}
        self._warned_at = at
        if self.expires - at < SOON:
            log.warning(event, **told)
        else:
            log.info(event, **told)


def read_context(files: TlsFiles, at: datetime) -> tuple[ssl.SSLContext, datetime]:
    """A context of these files as they are, and when the certificate ends.

    Raises:
        BadInput: one of them is missing or not what it should be, they do not belong together, it is not their time,
            or the certificate is for clients alone.
    """
    flag = f"{files.setting}-cert"
    expires = _check_certificate(flag, files.certificate, at)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    key_flag = f"{files.setting}-key"
    _read(key_flag, files.key)
    try:
        context.load_cert_chain(files.certificate, files.key, password=_refuse_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise BadInput(f"{key_flag}: {files.key} is not the key of {files.certificate}.") from error
        raise BadInput(f"{key_flag}: {files.key} is no private key without a password (PEM).") from error
    except (OSError, ValueError) as error:
        raise BadInput(f"{key_flag}: {files.key} is no private key without a password (PEM): {error}.") from error
    if files.client_authority is not None:
        _ask_clients(context, f"{files.setting}-client-ca", files.client_authority)
    return context, expires


def _check_certificate(flag: str, path: Path, at: datetime) -> datetime:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        certificate = x509.load_pem_x509_certificates(_read(flag, path))[0]
        uses = [
            use
            for each in certificate.extensions
            if isinstance(each.value, x509.ExtendedKeyUsage)
            for use in each.value
        ]
    except (ValueError, x509.InvalidVersion, x509.DuplicateExtension) as error:
        raise BadInput(f"{flag}: {path} is no certificate (PEM).") from error
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if at > last:
        raise BadInput(f"{flag}: the certificate in {path} has expired on {last:%Y-%m-%d %H:%M} UTC.")
    if at < first:
        raise BadInput(f"{flag}: the certificate in {path} is valid from {first:%Y-%m-%d %H:%M} UTC on.")
    if uses and not {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}.intersection(uses):
        raise BadInput(
            f"{flag}: the certificate in {path} is not for servers (its extended key usage has no serverAuth), so no "
            f"client would believe it."
        )
    return last


def _ask_clients(context: ssl.SSLContext, flag: str, path: Path) -> None:
    _read(flag, path)
    try:
        context.load_verify_locations(cafile=path)
    except OSError as error:  # ssl.SSLError is one; or it has gone meanwhile
        raise BadInput(f"{flag}: {path} has no certificates of authorities (PEM).") from error
    context.verify_mode = ssl.CERT_OPTIONAL  # who shows none needs a key, as ever; a wrong one ends the handshake


def _read(flag: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{flag}: {path} cannot be read: {error.strerror}.") from error


def _refuse_password() -> NoReturn:
    raise ValueError("it is encrypted")
