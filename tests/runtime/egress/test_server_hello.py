"""Whether a server asks for another hello."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_runtime.egress.client_hello import NoServerName
from pilotlight_runtime.egress.server_hello import MOST_ALERTS, AnswerReader
from tests.builders.certificates import a_server, an_authority
from tests.example_counts import examples
from tests.runtime.egress.test_client_hello import hello_of

HOST = "api.example.com"
WARNING = b"\x15\3\3\0\2\1\x70"


def answer_of(folder: Path, curve: str = "") -> bytes:
    """What OpenSSL says first, if it wants a key of that curve."""
    files = a_server(folder, HOST, host=HOST)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    if curve:
        context.set_ecdh_curve(curve)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    incoming.write(hello_of(HOST))
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_side=True).do_handshake()
    return outgoing.read()


def test_what_servers_send(tmp_path: Path) -> None:
    """In pieces, and behind warnings."""
    an_authority(tmp_path)
    for curve, asks_again in (("", False), ("secp384r1", True)):
        answer = answer_of(tmp_path, curve)
        assert AnswerReader().add(answer) is asks_again
        assert AnswerReader().add(WARNING * MOST_ALERTS + answer) is asks_again
        reader = AnswerReader()
        found = [reader.add((WARNING + answer)[at : at + 1]) for at in range(7 + 43)]
        assert found == [None] * 49 + [asks_again]


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad Request",
        WARNING * (MOST_ALERTS + 1),
        b"\x15\3\3\0\3\1\1\1",
        b"\x16\3\3\0\4\0\0\0\0",
        b"\x16\3\3\0\4\2\0\0\x56",
        b"\x16\3\3\0\x50\x0b" + bytes(80),
        b"\x17\3\3\0\x50" + bytes(80),
    ],
)
def test_what_cannot_be_told_is_refused(data: bytes) -> None:
    """Another protocol, a message in pieces, or another one first."""
    with pytest.raises(NoServerName):
        AnswerReader().add(data)


@given(st.binary(max_size=200))
@examples(200)
def test_any_bytes_end_well(data: bytes) -> None:
    """With an answer, a refusal, or a wait for more."""
    for whole in (data, b"\x16\3\3" + data, WARNING + data):
        try:
            assert AnswerReader().add(whole) in (None, True, False)
        except NoServerName:
            continue
