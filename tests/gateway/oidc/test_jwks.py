"""An issuer's public keys: what of them counts, and which of them a token may be signed with."""

from __future__ import annotations

import json
from typing import Any

import pytest
from joserfc.jwk import ECKey, OctKey, OKPKey

from pilotlight_core.model.records.issuers import ALGORITHMS
from pilotlight_gateway.oidc.jwks import KINDS, MOST_KEYS_READ, NoKeySet, candidates, read_key_set
from tests.gateway.oidc.token_maker import TokenMaker

MAKER, RSA = TokenMaker("ES256"), TokenMaker("RS256")


def read(*keys: Any) -> list[str | None]:
    return [key.name for key in read_key_set(json.dumps({"keys": keys}).encode())]


def test_each_algorithm_on_record_has_its_kind_of_key() -> None:
    """None takes a shared secret, and none is no algorithm."""
    assert set(KINDS) == set(ALGORITHMS)
    assert not any(name.startswith("HS") or name == "none" for name in KINDS)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_keys_of_each_kind_are_read(algorithm: str) -> None:
    assert read(TokenMaker(algorithm).jwk()) == ["key-1"]


@pytest.mark.parametrize(
    "key",
    [
        None, 7, {}, MAKER.jwk(use="enc"), MAKER.jwk(key_ops=["sign"]), MAKER.jwk(key_ops="verify"), MAKER.jwk(kid=7),
        MAKER.jwk(kid="k" * 300), MAKER.jwk(alg=["ES256"]), MAKER.jwk(crv="P-192"), MAKER.jwk(crv="Ed25519"),
        MAKER.jwk(x=None), MAKER.jwk(x=7), MAKER.jwk(kty="XX"), MAKER.jwk(kty=["EC"]),
        MAKER.key.as_dict(private=True) | {"kid": "p"}, OctKey.generate_key(256).as_dict(private=True) | {"kid": "s"},
        ECKey.generate_key("secp256k1").as_dict(private=False), OKPKey.generate_key("X25519").as_dict(private=False),
        RSA.jwk(n="AQAB"), RSA.jwk(n="A" * 1_366 + "AB" * 20), RSA.jwk(n="Q" * 3_000), RSA.jwk(n="§"),
        RSA.jwk(e="Q" * 100), RSA.jwk(e=""),
    ],
)  # fmt: skip
def test_what_is_no_public_key_for_signatures_is_left_out(key: Any) -> None:
    """Secrets, private ones, those for encryption, of other curves, too short and too long ones; others stay."""
    assert read(key, MAKER.jwk(kid="good")) == ["good"]


@pytest.mark.parametrize(
    "document", [b"", b"[]", b"{}", b'{"keys":{}}', b'{"keys":[],"keys":[]}', b"<html>", b'{"keys":7}']
)
def test_what_is_no_set_is_refused(document: bytes) -> None:
    with pytest.raises(NoKeySet):
        read_key_set(document)


def test_a_set_is_bounded() -> None:
    assert len(read(*[MAKER.jwk()] * MOST_KEYS_READ)) == MOST_KEYS_READ
    with pytest.raises(NoKeySet, match="more than 100"):
        read(*[MAKER.jwk()] * (MOST_KEYS_READ + 1))


def test_a_token_chooses_among_fit_keys_only() -> None:
    """By name, kind and algorithm; without a name only if there is no choice."""
    rsa, other = TokenMaker("RS256"), TokenMaker("ES256", "key-2")
    keys = read_key_set(MAKER.jwks(rsa.jwk(), other.jwk(alg=None)))
    assert [key.kind for key in candidates(keys, "ES256", "key-1")] == ["P-256"]
    assert [key.kind for key in candidates(keys, "RS256", "key-1")] == ["RSA"]
    assert [key.name for key in candidates(keys, "ES256", "key-2")] == ["key-2"]
    for algorithm, name in (("RS512", "key-1"), ("ES384", "key-1"), ("HS256", "key-1"), ("none", "key-1"), ("", None)):
        assert candidates(keys, algorithm, name) == []
    assert candidates(keys, "ES256", None) == []
    assert [key.kind for key in candidates(keys, "RS256", None)] == ["RSA"]


def test_keys_of_one_name_are_bounded() -> None:
    """Each costs a verification."""
    keys = read_key_set(json.dumps({"keys": [MAKER.jwk()] * 50}).encode())
    assert len(candidates(keys, "ES256", "key-1")) == 3


def test_two_names_of_one_algorithm() -> None:
    maker = TokenMaker("EdDSA")
    for shown in ("EdDSA", "Ed25519", None):
        keys = read_key_set(json.dumps({"keys": [maker.jwk(alg=shown)]}).encode())
        assert len(candidates(keys, "EdDSA", "key-1")) == len(candidates(keys, "Ed25519", "key-1")) == 1
