"""What servers ask is read, and what answers them is signed. That a server believes it: `test_node_admission`."""

from __future__ import annotations

import base64

import msgspec
import pytest

from pilotlight_core.bus import bus_users
from pilotlight_core.bus.nkeys import Nkey, NkeyKind, verify
from pilotlight_gateway.nodes.admission_claims import BadAdmission, admitted, read_ask, refused_admission

KEY, ISSUER = Nkey.generate(NkeyKind.USER), Nkey.generate(NkeyKind.ACCOUNT)


def token(**options: str) -> bytes:
    claims = {
        "iss": "N1",
        "nats": {
            "server_id": {"id": "N1", "name": "bus"}, "user_nkey": "UCONNECTION",
            "client_info": {"host": "10.0.0.7", "id": 6, "nonce": "made-up"},
            "connect_opts": {"name": "agent n1", "protocol": 1, **options}, "type": "authorization_request",
        },
    }  # fmt: skip
    return b"head." + base64.urlsafe_b64encode(msgspec.json.encode(claims)).rstrip(b"=") + b".signature"


def read(data: bytes) -> tuple[dict[str, object], bool]:
    """The claims of an answer, and whether the issuer has signed them."""
    head, body, signature = data.split(b".")
    padded = [part + b"=" * (-len(part) % 4) for part in (body, signature)]
    claims, signed = (base64.urlsafe_b64decode(part) for part in padded)
    return msgspec.json.decode(claims), verify(ISSUER.public, head + b"." + body, signed)


@pytest.mark.parametrize("write", [base64.b64encode, base64.urlsafe_b64encode], ids=["Python", "Go"])
def test_a_key_is_proved_by_its_signature(write: object) -> None:
    """In either alphabet, with padding or without."""
    for strip in (b"", b"="):
        signed = write(KEY.sign(b"made-up")).rstrip(strip).decode()  # type: ignore[operator]
        asked = read_ask(token(nkey=KEY.public, sig=signed))
        assert (asked.server, asked.connection, asked.name) == ("N1", "UCONNECTION", "agent n1")
        assert asked.is_proved


@pytest.mark.parametrize(
    "options", [{}, {"user": "x", "pass": "y"}, {"nkey": KEY.public}, {"nkey": KEY.public, "sig": "AAAA"}]
)
def test_without_one_nothing_is_proved(options: dict[str, str]) -> None:
    """A password is none."""
    assert not read_ask(token(**options)).is_proved


@pytest.mark.parametrize("data", [b"", b"a.b.c", b"a.e30.c", b"no dots", token()[:60]])
def test_what_cannot_be_read_is_refused(data: bytes) -> None:
    """Whoever sent it."""
    with pytest.raises(BadAdmission):
        read_ask(data)


def test_who_is_let_in_may_do_an_agents_work() -> None:
    """The lists are those of the users that the configuration names."""
    answer, signed = read(admitted(read_ask(token()), bus_users.agent("n1"), ISSUER, 7.9))
    assert signed
    assert (answer["sub"], answer["aud"], answer["iss"], answer["iat"]) == ("UCONNECTION", "N1", ISSUER.public, 7)
    given, signed = read(answer["nats"]["jwt"].encode())  # type: ignore[index]
    assert signed
    assert (given["sub"], given["name"], given["aud"]) == ("UCONNECTION", "agent-n1", "$G")
    allowed = given["nats"]
    assert allowed["pub"] == {"allow": list(bus_users.agent("n1").publish)}  # type: ignore[index]
    assert allowed["sub"] == {"allow": list(bus_users.agent("n1").subscribe)}  # type: ignore[index]


def test_who_is_not_hears_why() -> None:
    """Without any right."""
    answer, signed = read(refused_admission(read_ask(token()), "n1: it was revoked", ISSUER, 7.0))
    assert signed
    assert answer["nats"] == {"type": "authorization_response", "version": 2, "error": "n1: it was revoked"}
