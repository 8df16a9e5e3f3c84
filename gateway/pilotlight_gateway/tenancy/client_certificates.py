"""A client's certificate in place of an API key: its holder's name is looked up among the key records.

A connection whose client has proved a certificate of `--tls-client-ca` has an `Authorization` header of its own, which
counts for requests that bring none. It holds a secret of this process, so that no client can write one.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple

HOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
"""As `pilotlight ca issue` names clients; no other name is ever mapped."""
SCHEME = f"certificate {secrets.token_hex(16)} ".encode()
ISSUE_SLACK_S = 300.0
"""How much earlier than it is issued a certificate begins, for clocks that are behind, as `pilotlight ca` has it."""
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_LENGTH = 8


class CertificateHolder(NamedTuple):
    """Whom a certificate names, and the unix second from which on it is valid."""

    name: str
    begins_at: float

    def is_since(self, issued_from: float) -> bool:
        """Whether the certificate may have been issued at that unix second or later: certificates know whole ones."""
        return self.begins_at + ISSUE_SLACK_S >= int(issued_from)


class ClientCertificate(NamedTuple):
    """What stands for an `Authorization` header, until the unix second at which the certificate ends."""

    authorization: bytes
    ends_at: float

    def add_to(self, headers: list[tuple[bytes, bytes]], at: float) -> None:
        """Add it to a request's headers, unless they have one, or the certificate has ended at the unix second `at`."""
        if at < self.ends_at and all(name != b"authorization" for name, _ in headers):
            headers.append((b"authorization", self.authorization))


def certificate_of(shown: Mapping[str, Any] | None) -> ClientCertificate | None:
    """What a certificate proves that TLS has verified (`getpeercert()`); None: there is none.

    One whose holder has no name that could be mapped proves nobody, which is refused as an unmapped name is.
    """
    if not shown:
        return None
    names = [value for part in shown.get("subject", ()) for name, value in part if name == "commonName"]
    holder = names[0] if len(names) == 1 and HOLDER.fullmatch(names[0]) else "-"
    begins_at = ssl.cert_time_to_seconds(shown["notBefore"])
    authorization = SCHEME + f"{begins_at} {holder}".encode()
    return ClientCertificate(authorization, ssl.cert_time_to_seconds(shown["notAfter"]))


def holder_of(authorization: bytes) -> CertificateHolder | None:
    """Whom a connection's certificate names; None: it is a client's own header."""
    if not authorization.startswith(SCHEME):
        return None
    begins_at, _, name = authorization.removeprefix(SCHEME).decode().partition(" ")
    return CertificateHolder(name, float(begins_at))


def certificate_key_id(holder: str) -> str:
    """The id of the key record of a certificate's holder. The record names the holder whole: ids may be alike."""
    number, digits = int.from_bytes(hashlib.sha256(b"certificate " + holder.encode()).digest()), ""
    for _ in range(ID_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits += ALPHABET[digit]
    return digits
