"""The server name in a TLS ClientHello (RFC 8446, RFC 6066). Pure.

What a server would not take is refused, not passed over: two readings of one hello are how names are smuggled. So is an
encrypted hello (ECH), whose true name nobody here can read.
"""

from __future__ import annotations

MOST_HELLO = 16 * 1024
"""Bytes. With keys of post-quantum groups hellos are some 2 KiB."""
HANDSHAKE, CLIENT_HELLO = 22, 1
MOST_RECORD = 2**14
SERVER_NAME, ENCRYPTED_HELLO = 0, 0xFE0D
HOST_NAME = 0


class NoServerName(Exception):
    """These bytes name no server in a way that can be checked."""


class _Short(Exception):
    """The bytes end too early."""


class _Bytes:
    """Reads numbers and vectors from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise _Short
        self._at += size
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def vector(self, size: int) -> bytes:
        """Bytes behind their length, which has `size` bytes."""
        return self.take(self.number(size))


def server_name(data: bytes) -> str | None:
    """The name in a client's first bytes, in small letters; None: there must be more of them.

    Raises:
        NoServerName: why there is none.
    """
    hello = _hello(data)
    if hello is None:
        if len(data) >= MOST_HELLO:
            raise NoServerName(f"its first TLS message is larger than {MOST_HELLO} bytes")
        return None
    try:
        return _name(_extensions(hello))
    except _Short:
        raise NoServerName("its first TLS message cannot be read") from None


def _hello(data: bytes) -> bytes | None:
    """The message's body, of one record or several; None: there must be more bytes."""
    records, message = _Bytes(data), b""
    try:
        while True:
            if records.number(1) != HANDSHAKE:
                raise NoServerName("it does not speak TLS")
            if records.number(1) != 3:
                raise NoServerName("it does not speak TLS")
            records.take(1)
            size = records.number(2)
            if not 0 < size <= MOST_RECORD:
                raise NoServerName("its first TLS record has no possible size")
            message += records.take(size)
            if message[0] != CLIENT_HELLO:
                raise NoServerName("its first TLS message is no ClientHello")
            if len(message) >= 4:
                needed = int.from_bytes(message[1:4])
                if needed > MOST_HELLO:
                    raise NoServerName(f"its first TLS message is larger than {MOST_HELLO} bytes")
                if len(message) >= 4 + needed:
                    return message[4 : 4 + needed]
    except _Short:
        return None


def _extensions(hello: bytes) -> dict[int, bytes]:
    body = _Bytes(hello)
    body.take(2 + 32)  # the version, and random bytes
    body.vector(1)  # the session
    body.vector(2)  # cipher suites
    body.vector(1)  # compression
    if not body:
        return {}
    extensions = _Bytes(body.vector(2))
    if body:
        raise NoServerName("its first TLS message goes on behind its end")
    found: dict[int, bytes] = {}
    while extensions:
        kind, content = extensions.number(2), extensions.vector(2)
        if kind in found:
            raise NoServerName("its first TLS message has an extension twice")
        found[kind] = content
    return found


def _name(extensions: dict[int, bytes]) -> str:
    if ENCRYPTED_HELLO in extensions:
        raise NoServerName("it encrypts the name of the server (ECH)")
    if SERVER_NAME not in extensions:
        raise NoServerName("it names no server (SNI)")
    content = _Bytes(extensions[SERVER_NAME])
    entries = _Bytes(content.vector(2))
    kind, name = entries.number(1), entries.vector(2)
    if content or entries or kind != HOST_NAME:
        raise NoServerName("it names several servers, or none by its host")
    try:
        return name.decode("ascii").lower()
    except UnicodeDecodeError:
        raise NoServerName("its server's name is not ASCII") from None
