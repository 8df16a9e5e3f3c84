"""What two hosts say before they link: a request over HTTP, and its answer, each with a proof. Pure.

    GET /links/{link}, Upgrade: pilotlight-link, with a nonce and a proof    who was asked -> gateway
    101 Switching Protocols, with another proof                              gateway -> who was asked

Both proofs are of the secret of a `LinkOffer`, which neither says: whoever reads them cannot link, and a listener that
does not know it is not believed. From then on the connection is a link's.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from pilotlight_core.model.messages.link_messages import LinkOffer

LINKS_PATH = "/links/"
UPGRADE = b"pilotlight-link"
NONCE, PROOF = b"pilotlight-nonce", b"pilotlight-proof"
MOST_HEAD_BYTES = 4_096
"""Of the answer."""
HEAD_END = b"\r\n\r\n"
REFUSED_LINK = b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
"""The same whatever was wrong: a stranger learns nothing of which links are offered."""


@dataclass(frozen=True)
class LinkAddress:
    """Where a gateway listens."""

    host: str
    port: int
    tls: bool


def address_of_link(url: str) -> LinkAddress | None:
    """What `https://HOST:PORT` or `http://HOST:PORT` says; None: it is neither."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}[parts.scheme]
        return LinkAddress(parts.hostname, port, parts.scheme == "https") if parts.hostname else None
    except (ValueError, KeyError):
        return None


def new_nonce() -> str:
    return secrets.token_hex(16)


def proof_of_caller(secret: str, link: str, nonce: str) -> str:
    """What proves that it was asked."""
    return _proof(secret, f"caller {link} {nonce}")


def proof_of_listener(secret: str, link: str, nonce: str) -> str:
    """What proves that it has asked."""
    return _proof(secret, f"listener {link} {nonce}")


def is_proof(given: str, expected: str) -> bool:
    """Whether they are the same, in a time that says nothing of where they differ."""
    return hmac.compare_digest(given.encode(), expected.encode())


def link_request(offer: LinkOffer, address: LinkAddress, nonce: str) -> bytes:
    """The head with which who was asked connects."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    proof = proof_of_caller(offer.secret, offer.hello.link, nonce)
    return (
        f"GET {LINKS_PATH}{offer.hello.link} HTTP/1.1\r\nhost: {host}:{address.port}\r\nconnection: Upgrade\r\n"
        f"upgrade: {UPGRADE.decode()}\r\n{NONCE.decode()}: {nonce}\r\n{PROOF.decode()}: {proof}\r\n\r\n"
    ).encode()


def link_answer(proof: str) -> bytes:
    """The head with which the gateway takes the connection for a link."""
    return (
        f"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: {UPGRADE.decode()}\r\n"
        f"{PROOF.decode()}: {proof}\r\n\r\n"
    ).encode()


def header_of(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    """The value of the only header of that name, which are in lower case; "": there is none, or there are several."""
    values = [value for known, value in headers if known == name]
    return values[0].decode("latin-1").strip() if len(values) == 1 else ""


def proof_in_answer(head: bytes) -> str:
    """The listener's proof; "": it has not taken the connection for a link."""
    first, *lines = head.split(b"\r\n")
    if first.split(b" ")[:2] != [b"HTTP/1.1", b"101"]:
        return ""
    headers = [(name.strip().lower(), value) for name, _, value in (line.partition(b":") for line in lines)]
    return header_of(headers, PROOF)


def _proof(secret: str, text: str) -> str:
    return hmac.new(secret.encode(), text.encode(), "sha256").hexdigest()
