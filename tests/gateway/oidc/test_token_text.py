"""A token is read strictly: hostile ones end here, before anything is fetched or verified."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import Unauthenticated
from pilotlight_gateway.oidc.token_text import (
    LONGEST_TOKEN,
    MOST_PARTS,
    NotStrict,
    read_document,
    read_issuer,
    read_token,
)
from tests.gateway.oidc.token_maker import claims, encoded

HEADER = b'{"alg":"ES256","kid":"key-1","typ":"at+jwt"}'


def text(header: bytes = HEADER, payload: bytes | None = None, signature: bytes = b"AAAA") -> bytes:
    payload = json.dumps(claims()).encode() if payload is None else payload
    return b".".join((encoded(header), encoded(payload), signature))


def headed(**members: Any) -> bytes:
    return text(json.dumps({"alg": "ES256", "kid": "key-1"} | members).encode())


def refused(token: bytes) -> str:
    with pytest.raises(Unauthenticated) as caught:
        read_token(token)
    assert caught.value.wire_code == "token_invalid"
    return caught.value.detail


def test_a_good_one_is_read() -> None:
    """With and without a type and a key's name."""
    found = read_token(text())
    assert (found.algorithm, found.key_name, found.claims) == ("ES256", "key-1", claims())
    for kind in ("JWT", "jwt", "application/at+jwt"):
        assert read_token(headed(typ=kind)).claims == claims()
    assert read_token(text(b'{"alg":"ES256"}')).key_name is None


@pytest.mark.parametrize(
    "token",
    [
        b"", b"eyJ", b"a.b", b"ey.ey.", b"ey..AAAA", b".ey.AAAA", text() + b".", text().replace(b".", b"..", 1),
        text() + b"=", text()[:-2] + b"!!", text() + b"\n", b" " + text(), text().replace(b"ey", b"e/", 1),
    ],
)  # fmt: skip
def test_what_has_not_three_parts_is_none(token: bytes) -> None:
    assert "three parts" in refused(token) or "base64url" in refused(token)


def test_what_is_too_large_is_none() -> None:
    """However it goes on, and in each of its parts."""
    assert "longer than" in refused(text(payload=b"{" + b" " * LONGEST_TOKEN + b"}"))
    assert "three parts" in refused(text(header=b'{"alg":"ES256"' + b" " * 4_000 + b"}"))
    assert "three parts" in refused(text(signature=b"A" * 3_000))


@pytest.mark.parametrize("part", [b"{}", b"1e-300", b"[]"])
def test_what_has_too_many_parts_is_none(part: bytes) -> None:
    """It is not even read: what takes milliseconds would be sent by the thousand. As many groups are taken."""
    many = b",".join([part] * MOST_PARTS)
    assert "parts" in refused(text(payload=b'{"a":[' + many + b"]}"))
    assert "parts" in refused(text(header=b'{"a":[' + b",".join([b"1"] * MOST_PARTS) + b"]}"))
    some = ",".join(f'"g{number:07}"' for number in range(MOST_PARTS - 1)).encode()
    assert len(read_token(text(payload=b'{"a":[' + some + b"]}")).claims["a"]) == MOST_PARTS - 1


def test_its_issuer_is_seen_first() -> None:
    """Without the rest being read; what names none is none."""
    assert read_issuer(text()) == claims()["iss"]
    assert read_issuer(text(payload=b'{"a":[1,2],"a":1,"iss":"i","iss":"j"}')) == "j"
    with pytest.raises(Unauthenticated, match="parts"):
        read_issuer(text(payload=b'{"a":[' + b",".join([b"{}"] * 3_000) + b'],"iss":"i"}'))
    deep = b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b',"iss":"i"}'
    for payload in (b"{}", b"[]", b'{"iss":7}', b'{"iss":["i"]}', b'{"iss":"\xff"}', b"", b"\xff", deep):
        with pytest.raises(Unauthenticated, match=r"iss|parts"):
            read_issuer(text(payload=payload))


def test_no_spare_bits() -> None:
    """Two texts of one signature would be two tokens for whoever remembers tokens."""
    assert "spare bits" in refused(text(signature=b"AB"))
    assert "no base64url" in refused(text(signature=b"AAAAA"))


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"crit": ["exp"]}, "extensions"),
        ({"b64": False}, "another kind"),
        ({"zip": "DEF"}, "compressed"),
        ({"enc": "A128GCM"}, "encrypted"),
        ({"cty": "JWT"}, "another token"),
        ({"alg": None}, "algorithm"),
        ({"alg": ["ES256"]}, "algorithm"),
        ({"typ": "logout+jwt"}, "not for this"),
        ({"typ": "dpop+jwt"}, "not for this"),
        ({"typ": 1}, "not for this"),
        ({"kid": 7}, "no name"),
        ({"kid": {"a": 1}}, "no name"),
        ({"kid": "k" * 300}, "no name"),
    ],
)
def test_what_is_another_kind_of_thing_is_refused(members: dict[str, Any], why: str) -> None:
    assert why in refused(headed(**members))


def test_an_encrypted_one_is_refused() -> None:
    assert "encrypted" in refused(text() + b".AAAA.AAAA")


def test_keys_in_a_token_are_not_read() -> None:
    """Nor addresses of keys: they are as if they were not there."""
    told = {"jku": "http://169.254.169.254/", "x5u": "file:///etc/passwd", "jwk": {"kty": "oct", "k": "AAAA"}}
    found = read_token(headed(**told, x5c=["AAAA"]))
    assert found == read_token(headed())._replace(text=found.text)


@pytest.mark.parametrize(
    "document",
    [
        b'{"sub":"ada","sub":"eve"}', b'{"a":{"b":1,"b":2}}', b'{"s\\u0075b":1,"sub":2}', b'{"exp":NaN}',
        b'{"exp":Infinity}', b'{"a":' + b"[" * 3_000 + b"]" * 3_000 + b"}", b'{"exp":' + b"9" * 5_000 + b"}",
        b'{"sub":"\\ud800"}', b'{"sub":"\xff"}', b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}", b"[]", b"1", b'"a"', b"null",
        b"", b"{}{}", b'{"a":1,}', b"{'a':1}",
    ],
)  # fmt: skip
def test_what_can_be_read_in_two_ways_is_refused(document: bytes) -> None:
    """Members given twice, also by escapes, numbers that are none, depth, half characters, other encodings."""
    with pytest.raises(NotStrict):
        read_document(document)
    assert refused(text(payload=document))
    assert refused(text(header=document))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Nothing else ever comes of them."""
    for token in (data, text(payload=data), text(header=data)):
        with suppress(Unauthenticated):
            assert read_token(token).text == token
