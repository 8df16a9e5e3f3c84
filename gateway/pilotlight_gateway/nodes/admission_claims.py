"""What nats-server asks before it lets a connection in that its configuration does not name, and the answers.

It asks on `bus_users.ADMISSIONS` with a token of claims, and believes an answer that is signed by the issuer which its
configuration names: the connection's permissions, or why there are none. NATS calls that an auth callout. Pure: the
instant and the issuer's key are arguments.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

import msgspec

from pilotlight_core.bus.bus_users import BusUser
from pilotlight_core.bus.nkeys import Nkey, verify

ACCOUNT_OF_ALL = "$G"
"""The account of the users that a server's configuration names without one."""
HEAD = {"typ": "JWT", "alg": "ed25519-nkey"}
TEXT_AT_MOST = 4096


class BadAdmission(ValueError):
    """What the server asked cannot be read."""


class AdmissionAsk(msgspec.Struct, frozen=True, kw_only=True):
    """A connection that wants in. What it says of itself is not checked yet."""

    server: str
    connection: str
    """The key by which the server names the connection in its answer."""
    name: str
    """What the client calls itself."""
    key: str = ""
    nonce: str = ""
    """What the server gave it to sign."""
    signature: bytes = b""

    @property
    def is_proved(self) -> bool:
        """Whether the client holds the key that it names."""
        return bool(self.key and self.nonce) and verify(self.key, self.nonce.encode(), self.signature)


class _Server(msgspec.Struct):
    id: str


class _Client(msgspec.Struct):
    nonce: str = ""


class _Options(msgspec.Struct):
    name: str = ""
    nkey: str = ""
    sig: str = ""


class _Asked(msgspec.Struct):
    server_id: _Server
    user_nkey: str
    client_info: _Client
    connect_opts: _Options


class _Claims(msgspec.Struct):
    nats: _Asked


def read_ask(token: bytes) -> AdmissionAsk:
    """What a server asks.

    Raises:
        BadAdmission: it cannot be read.
    """
    try:
        asked = msgspec.json.decode(_decoded(token.split(b".")[1]), type=_Claims).nats
        signature = _decoded(asked.connect_opts.sig[:TEXT_AT_MOST].encode())
    except (IndexError, ValueError, msgspec.DecodeError) as error:
        raise BadAdmission(str(error)) from None
    return AdmissionAsk(
        server=asked.server_id.id,
        connection=asked.user_nkey,
        name=asked.connect_opts.name[:TEXT_AT_MOST],
        key=asked.connect_opts.nkey[:TEXT_AT_MOST],
        nonce=asked.client_info.nonce,
        signature=signature,
    )


def admitted(asked: AdmissionAsk, user: BusUser, issuer: Nkey, at: float) -> bytes:
    """The answer that lets a connection in as `user`, with its permissions and no others."""
    allowed = {
        "type": "user",
        "version": 2,
        "pub": {"allow": list(user.publish)},
        "sub": {"allow": list(user.subscribe)},
        "subs": -1,
        "data": -1,
        "payload": -1,
    }
    claims = {"sub": asked.connection, "aud": ACCOUNT_OF_ALL, "name": user.name, "nats": allowed}
    return _answer(asked, {"jwt": _signed(claims, issuer, at).decode()}, issuer, at)


def refused_admission(asked: AdmissionAsk, reason: str, issuer: Nkey, at: float) -> bytes:
    """The answer that lets it out; the server writes the reason to its log."""
    return _answer(asked, {"error": reason}, issuer, at)


def _answer(asked: AdmissionAsk, said: dict[str, str], issuer: Nkey, at: float) -> bytes:
    nats = {"type": "authorization_response", "version": 2, **said}
    return _signed({"sub": asked.connection, "aud": asked.server, "nats": nats}, issuer, at)


def _signed(claims: dict[str, Any], issuer: Nkey, at: float) -> bytes:
    whole = {**claims, "iat": int(at), "iss": issuer.public}
    whole["jti"] = base64.b32encode(hashlib.sha256(msgspec.json.encode(whole)).digest()).decode().rstrip("=")
    text = b".".join((_encoded(msgspec.json.encode(HEAD)), _encoded(msgspec.json.encode(whole))))
    return text + b"." + _encoded(issuer.sign(text))


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _decoded(text: bytes) -> bytes:
    """Of both alphabets: clients in Python sign in the one, those in Go in the other."""
    try:
        return base64.b64decode(text.replace(b"-", b"+").replace(b"_", b"/") + b"=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError(str(error)) from None
