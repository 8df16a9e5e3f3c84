"""The server's name in a client's first bytes."""

from __future__ import annotations

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_runtime.egress.client_hello import (
    LEAST_FRAGMENT,
    MOST_HELLO,
    MOST_RECORDS,
    HelloReader,
    NoServerName,
)
from tests.example_counts import examples

HOST = "api.example.com"


def hello_of(host: str | None) -> bytes:
    """What OpenSSL sends first."""
    context = ssl.create_default_context()
    if host is None:
        context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, outgoing, server_hostname=host)
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def vector(content: bytes, size: int) -> bytes:
    return len(content).to_bytes(size) + content


def extension(kind: int, content: bytes) -> bytes:
    return kind.to_bytes(2) + vector(content, 2)


def names(*hosts: tuple[int, bytes]) -> bytes:
    return extension(0, vector(b"".join(bytes((kind,)) + vector(host, 2) for kind, host in hosts), 2))


def made(*extensions: bytes, behind: bytes = b"") -> bytes:
    """A ClientHello of these extensions, in one record."""
    body = b"\3\3" + bytes(32) + b"\0" + vector(b"\x13\1", 2) + vector(b"\0", 1) + vector(b"".join(extensions), 2)
    return records(b"\1" + vector(body + behind, 3))


def records(message: bytes, *, size: int = 2**14) -> bytes:
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\3\1" + vector(piece, 2) for piece in pieces)


def server_name(data: bytes) -> str | None:
    return HelloReader().add(data)


def why(data: bytes) -> str:
    with pytest.raises(NoServerName) as caught:
        server_name(data)
    return str(caught.value)


def test_what_clients_send() -> None:
    """OpenSSL's own, whatever its case, and one of ours."""
    assert server_name(hello_of(HOST)) == HOST
    assert server_name(hello_of("API.Example.COM")) == HOST
    assert server_name(made(names((0, HOST.encode())))) == HOST


def test_it_waits_for_the_rest() -> None:
    """However the bytes arrive."""
    hello = hello_of(HOST)
    assert all(server_name(hello[:size]) is None for size in range(len(hello)))


def test_what_comes_in_pieces_is_read_once() -> None:
    """A byte at a time: what is behind the message is told apart, and a message that grows costs nothing anew."""
    reader, hello = HelloReader(), hello_of(HOST)
    found = [reader.add(hello[at : at + 1]) for at in range(len(hello))]
    assert found == [None] * (len(hello) - 1) + [HOST]
    assert reader.take() == (hello, b"")
    behind = HelloReader()
    assert behind.add(hello + b"more") == HOST
    assert behind.take() == (hello, b"more")


@pytest.mark.parametrize("size", [LEAST_FRAGMENT, 100])
def test_a_message_may_be_in_several_records(size: int) -> None:
    """Which is a way to hide it from those who read the first alone."""
    message = hello_of(HOST)[5:]
    cut = records(message, size=size)
    assert server_name(cut) == HOST
    assert server_name(cut[:-1]) is None


def test_a_message_is_not_in_crumbs() -> None:
    """Neither in tiny records nor in many: to read them costs more than to send them."""
    message = hello_of(HOST)[5:]
    for size in (1, 3, LEAST_FRAGMENT - 1):
        assert "too small pieces" in why(records(message, size=size))
    large = made(names((0, HOST.encode())), extension(21, bytes(LEAST_FRAGMENT * MOST_RECORDS)))[5:]
    assert "too many pieces" in why(records(large, size=LEAST_FRAGMENT))
    assert server_name(records(large, size=2 * LEAST_FRAGMENT)) == HOST


def test_a_second_hello() -> None:
    """Clients change the cipher before it, once; before a first one nobody does."""
    change, hello = b"\x14\3\3\0\1\1", hello_of(HOST)
    assert "does not speak TLS" in why(change + hello)
    again = HelloReader(may_change_cipher=True)
    assert again.add(change + hello[:10]) is None
    assert again.add(hello[10:]) == HOST
    assert again.take() == (change + hello, b"")
    assert HelloReader(may_change_cipher=True).add(hello) == HOST
    for bad in (change + change + hello, b"\x14\3\3\0\2\1\1" + hello, b"\x17\3\3\0\1\1" + hello):
        with pytest.raises(NoServerName):
            HelloReader(may_change_cipher=True).add(bad)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\n", "does not speak TLS"),
        (b"\x16\2\0", "does not speak TLS"),
        (b"\x80\x2e\1\0\2", "does not speak TLS"),
        (b"\x15\3\1\0\2\2\x28", "does not speak TLS"),
        (b"\x16\3\1\0\0", "no possible size"),
        (b"\x16\3\1\xff\xff", "no possible size"),
        (records(b"\2" + bytes(10)), "no ClientHello"),
        (records(b"\1\xff\xff\xff" + bytes(10)), f"larger than {MOST_HELLO}"),
        (made(), "names no server"),
        (made(extension(10, b"")), "names no server"),
        (made(names((0, b"a.example.com"), (0, HOST.encode()))), "several servers"),
        (made(names((1, HOST.encode()))), "none by its host"),
        (made(extension(0, b"")), "cannot be read"),
        (made(names((0, HOST.encode())), names((0, b"evil.example.org"))), "twice"),
        (made(names((0, HOST.encode())), extension(0xFE0D, b"\0secret")), "encrypts the name"),
        (made(names((0, "büro.example".encode()))), "not ASCII"),
        (made(names((0, HOST.encode())), behind=b"more"), "behind its end"),
        (records(made(names((0, HOST.encode())))[5:] * 2), "behind its end"),
        (records(b"\1" + vector(b"\3\3" + bytes(10), 3)), "cannot be read"),
    ],
)
def test_what_names_no_server(data: bytes, reason: str) -> None:
    """Each is refused with the reason."""
    assert reason in why(data)


def test_a_client_without_a_name() -> None:
    """As one that connects by an address."""
    assert "names no server" in why(hello_of(None))


def test_it_does_not_wait_for_ever() -> None:
    """A record that never ends is refused at its bound."""
    head = records(b"\1" + vector(bytes(MOST_HELLO), 3))[:9]
    grown = head + bytes(MOST_HELLO)
    assert server_name(grown[: MOST_HELLO - 1]) is None
    assert "larger" in why(grown[:MOST_HELLO])


@given(st.binary(max_size=400))
@examples(300)
def test_any_bytes_end_well(data: bytes) -> None:
    """With a name, a refusal, or a wait for more."""
    for whole in (data, b"\x16\3\1" + vector(data, 2), made(data), made(names((0, HOST.encode())), data)):
        try:
            found = server_name(whole)
        except NoServerName:
            continue
        assert found is None or isinstance(found, str)
