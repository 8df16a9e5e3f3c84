"""An issuer's public keys (RFC 7517), as it shows them, and those that a token may have been signed with. Pure."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pilotlight_gateway.oidc.token_text import LONGEST_KEY_NAME, NotStrict, read_document

MOST_KEYS_READ = 100
MOST_TRIED = 3
"""Keys of one name that a signature is tried with."""
LEAST_RSA_BYTES, MOST_RSA_BYTES = 256, 1_024
"""2048 and 8192 bits: shorter ones are broken, and longer ones take too long."""
MOST_EXPONENT_BYTES = 4
KINDS = {
    "RS256": "RSA", "RS384": "RSA", "RS512": "RSA", "PS256": "RSA", "PS384": "RSA", "PS512": "RSA",
    "ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519", "Ed25519": "Ed25519",
}  # fmt: skip
"""The kind of key that each algorithm needs. None of them takes a shared secret."""
ALSO = {"EdDSA": ("EdDSA", "Ed25519"), "Ed25519": ("EdDSA", "Ed25519")}
"""Two names of one algorithm (RFC 9864)."""
MEMBERS = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}


class SignatureKey(NamedTuple):
    """A key with which signatures are verified."""

    name: str | None
    algorithm: str | None
    """The only one that it is for; None: its issuer does not say."""
    kind: str
    """As in `KINDS`."""
    members: dict[str, str]


class NoKeySet(Exception):
    """What an issuer has shown is no set of keys; the message says why."""


def read_key_set(body: bytes) -> tuple[SignatureKey, ...]:
    """The keys for signatures in a JWKS document; others are left out.

    Raises:
        NoKeySet.
    """
    try:
        found = read_document(body).get("keys")
    except NotStrict as error:
        raise NoKeySet(f"it is no JSON object that can be read in one way only ({error})") from None
    if not isinstance(found, list):
        raise NoKeySet("it has no list of keys")
    if len(found) > MOST_KEYS_READ:
        raise NoKeySet(f"it has {len(found)} keys, which are more than {MOST_KEYS_READ}")
    return tuple(key for each in found if isinstance(each, Mapping) and (key := _public_key(each)) is not None)


def candidates(keys: Iterable[SignatureKey], algorithm: str, name: str | None) -> list[SignatureKey]:
    """The keys with which a token may be signed; without a name there is none unless only one is fit."""
    names = ALSO.get(algorithm, (algorithm,))
    fit = [key for key in keys if key.kind == KINDS.get(algorithm) and key.algorithm in (None, *names)]
    if name is None:
        return fit if len(fit) == 1 else []
    return [key for key in fit if key.name == name][:MOST_TRIED]


def _public_key(shown: Mapping[str, Any]) -> SignatureKey | None:
    kty, name, algorithm = shown.get("kty"), shown.get("kid"), shown.get("alg")
    if not isinstance(kty, str) or kty not in MEMBERS or shown.get("use", "sig") != "sig" or "d" in shown:
        return None
    operations = shown.get("key_ops", ["verify"])
    if not isinstance(operations, list) or "verify" not in operations:
        return None
    if any(not isinstance(one, str | None) for one in (name, algorithm)) or len(name or "") > LONGEST_KEY_NAME:
        return None
    members = {member: shown.get(member) for member in MEMBERS[kty]}
    if not all(isinstance(member, str) for member in members.values()):
        return None
    kind = "RSA" if kty == "RSA" else str(members["crv"])
    if kind not in KINDS.values() or (kty == "OKP") != (kind == "Ed25519"):
        return None
    if kty == "RSA" and not _is_fit(str(members["n"]), str(members["e"])):
        return None
    return SignatureKey(name, algorithm, kind, {"kty": kty, **{key: str(value) for key, value in members.items()}})


def _is_fit(modulus: str, exponent: str) -> bool:
    return LEAST_RSA_BYTES <= _length(modulus) <= MOST_RSA_BYTES and 0 < _length(exponent) <= MOST_EXPONENT_BYTES


def _length(number: str) -> int:
    try:
        return len(urlsafe_b64decode(number + "=" * (-len(number) % 4)).lstrip(b"\0"))
    except ValueError:
        return 0
