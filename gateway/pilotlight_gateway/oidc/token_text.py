"""Reads a signed token (JWT in the compact form of RFC 7515), strictly, before anything in it is believed.

What two readers could take for two things is refused: members given twice, bytes that are no UTF-8, base64 with spare
bits. So is what would make it another kind of thing than one signed document: encryption, compression, nesting,
extensions that have to be understood. Keys, and addresses of keys, in a token are never read.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, NamedTuple, NoReturn

import msgspec

from pilotlight_core.model.errors import Unauthenticated

LONGEST_TOKEN = 16_384
LONGEST_KEY_NAME = 256
MOST_PARTS = 600
"""Beginnings and commas of lists and objects in a header or a payload: what reading it strictly costs."""
COMPACT = re.compile(rb"([A-Za-z0-9_-]{2,4096})[.]([A-Za-z0-9_-]{2,16384})[.]([A-Za-z0-9_-]{2,2048})")
TYPES = ("jwt", "at+jwt", "application/jwt", "application/at+jwt")
OTHER_KINDS = {
    "crit": "needs extensions that are not understood here", "b64": "has a payload of another kind",
    "zip": "is compressed", "enc": "is encrypted", "cty": "holds another token",
}  # fmt: skip


class SignedToken(NamedTuple):
    """What a token says. None of it is verified."""

    text: bytes
    algorithm: str
    key_name: str | None
    claims: dict[str, Any]


class NotStrict(ValueError):
    """A document that could be read in more than one way."""


def invalid(why: str) -> Unauthenticated:
    """The error of a token that is no good, whoever sends it again."""
    return Unauthenticated(f"The token {why}.", code="token_invalid")


class _Issued(msgspec.Struct, frozen=True):
    iss: str


def read_issuer(text: bytes) -> str:
    """The issuer that a token names, at little cost: whether it can be read in one way is for `read_token` to say.

    Raises:
        Unauthenticated: `token_invalid`, with what is wrong.
    """
    payload = _decoded(_compact(text)[2], "payload")
    _check_parts(payload, "payload")
    try:
        return msgspec.json.decode(payload, type=_Issued).iss
    except (ValueError, RecursionError):
        raise invalid("does not say of which issuer it is (iss)") from None


def read_token(text: bytes) -> SignedToken:
    """The parts of a token.

    Raises:
        Unauthenticated: `token_invalid`, with what is wrong.
    """
    found = _compact(text)
    _decoded(found[3], "signature")
    header, claims = (_document(found[part], name) for part, name in ((1, "header"), (2, "payload")))
    algorithm, key_name = header.get("alg"), header.get("kid")
    for member, why in OTHER_KINDS.items():
        if member in header:
            raise invalid(why)
    if not isinstance(algorithm, str):
        raise invalid("does not say by which algorithm it is signed")
    kind = header.get("typ", TYPES[0])
    if not isinstance(kind, str) or kind.lower() not in TYPES:
        raise invalid(f"is of the type {kind!r:.60}, which is not for this")
    if key_name is not None and (not isinstance(key_name, str) or len(key_name) > LONGEST_KEY_NAME):
        raise invalid("names its key (kid) by something that is no name")
    return SignedToken(text, algorithm, key_name, claims)


def read_document(data: bytes) -> dict[str, Any]:
    """A JSON object that can be read in one way only.

    Raises:
        NotStrict: it is none.
    """
    try:
        found = json.loads(data.decode(), object_pairs_hook=_once_each, parse_constant=_no_number)
        msgspec.json.encode(found)  # refuses half characters and numbers of any length
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise NotStrict(str(error)) from None
    if not isinstance(found, dict):
        raise NotStrict("it is no object")
    return found


def _compact(text: bytes) -> re.Match[bytes]:
    if len(text) > LONGEST_TOKEN:
        raise invalid(f"is longer than {LONGEST_TOKEN} bytes")
    if text.count(b".") == 4:
        raise invalid("is encrypted")
    found = COMPACT.fullmatch(text)
    if found is None:
        raise invalid("is not a signed token: expected three parts of base64url")
    return found


def _document(part: bytes, name: str) -> dict[str, Any]:
    data = _decoded(part, name)
    _check_parts(data, name)
    try:
        return read_document(data)
    except NotStrict as error:
        raise invalid(f"has a {name} that is no JSON object, or one that can be read in two ways ({error})") from None


def _check_parts(data: bytes, name: str) -> None:
    if data.count(b",") + data.count(b"{") + data.count(b"[") > MOST_PARTS:
        raise invalid(f"has a {name} of more than {MOST_PARTS} parts")


def _decoded(part: bytes, name: str) -> bytes:
    try:
        data = urlsafe_b64decode(part + b"=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        raise invalid(f"has a {name} that is no base64url") from None
    if urlsafe_b64encode(data).rstrip(b"=") != part:
        raise invalid(f"has a {name} whose base64url has spare bits")
    return data


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotStrict("a member is given twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise NotStrict(f"{text} is no number")
