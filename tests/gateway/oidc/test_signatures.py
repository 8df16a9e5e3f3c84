"""Signatures, verified by a library with keys that fit."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest

from pilotlight_core.model.records.issuers import ALGORITHMS
from pilotlight_gateway.oidc.jwks import SignatureKey, candidates, read_key_set
from pilotlight_gateway.oidc.signatures import is_signed_by, load_verifier
from pilotlight_gateway.oidc.token_text import read_token
from tests.gateway.oidc.token_maker import TokenMaker, claims, encoded


def key_of(maker: TokenMaker) -> SignatureKey:
    (key,) = candidates(read_key_set(maker.jwks()), maker.algorithm, maker.name)
    return key


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_signed_is_told_from_what_is_not(algorithm: str) -> None:
    """Another key's signature, another token's, and a changed token's are none."""
    load_verifier()
    maker, other = TokenMaker(algorithm), TokenMaker(algorithm)
    token = read_token(maker.token())
    assert is_signed_by(token, key_of(maker))
    assert not is_signed_by(token, key_of(other))
    head, payload, signature = token.text.split(b".")
    changed = encoded(json.dumps(claims(sub="eve")).encode())
    assert not is_signed_by(read_token(b".".join((head, changed, signature))), key_of(maker))
    assert not is_signed_by(read_token(b".".join((head, payload, encoded(b"\0" * 64)))), key_of(maker))


def test_a_public_key_is_no_secret() -> None:
    """The oldest trick: HS256 with the text of the public key as its secret."""
    maker = TokenMaker("RS256")
    pem = maker.key.as_pem(private=False)
    signed = encoded(b'{"alg":"HS256","kid":"key-1"}') + b"." + encoded(json.dumps(claims()).encode())
    forged = signed + b"." + encoded(hmac.digest(pem, signed, hashlib.sha256))
    assert not is_signed_by(read_token(forged), key_of(maker))


def test_another_algorithm_of_the_same_key_is_another_signature() -> None:
    maker = TokenMaker("RS256")
    token = read_token(maker.token())
    for algorithm in ("PS256", "RS512", "ES256", "HS256", "none", ""):
        assert not is_signed_by(token._replace(algorithm=algorithm), key_of(maker))
