"""The server name in a TLS ClientHello (RFC 8446, RFC 6066). Pure.

What a server would not take is refused, not passed over: two readings of one hello are how names are smuggled. So is an
encrypted hello (ECH), whose true name nobody here can read.
"""

from __future__ import annotations

MOST_HELLO = 16 * 1024
"""Bytes. With keys of post-quantum groups hellos are some 2 KiB."""
MOST_RECORDS = 16
LEAST_FRAGMENT = 64
"""Bytes in a record of several, but for the last: nobody cuts a message smaller who does not want to hide it."""
CHANGE_CIPHER, HANDSHAKE, CLIENT_HELLO = 20, 22, 1
MOST_RECORD = 2**14
SERVER_NAME, ENCRYPTED_HELLO = 0, 0xFE0D
HOST_NAME = 0
_LARGE = f"its first TLS message is larger than {MOST_HELLO} bytes"


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


class HelloReader:
    """Takes a client's first bytes as they come. Each record is looked at once, when all of it is there.

    `may_change_cipher`: one record that says so may come before, as clients send it before a second hello.
    """

    def __init__(self, *, may_change_cipher: bool = False) -> None:
        self._may_change_cipher = may_change_cipher
        self.data = bytearray()
        """All that has come."""
        self._at = 0
        self._records = 0
        self._message = bytearray()

    def add(self, data: bytes) -> str | None:
        """The name, in small letters, once the message is whole; None: there must be more bytes.

        Raises:
            NoServerName: why there is none.
        """
        self.data += data
        while record := self._next_record():
            self._message += record
            if self._message[0] != CLIENT_HELLO:
                raise NoServerName("its first TLS message is no ClientHello")
            needed = 4 + int.from_bytes(self._message[1:4])
            if needed > MOST_HELLO:
                raise NoServerName(_LARGE)
            if len(self._message) > needed:
                raise NoServerName("its first TLS message goes on behind its end")
            if len(self._message) == needed:
                return _name_in(bytes(self._message[4:needed]))
            if len(record) < LEAST_FRAGMENT:
                raise NoServerName("its first TLS message is in too small pieces")
        if len(self.data) >= MOST_HELLO:
            raise NoServerName(_LARGE)
        return None

    def take(self) -> tuple[bytes, bytes]:
        """The bytes of the records that were read, and those behind them."""
        return bytes(self.data[: self._at]), bytes(self.data[self._at :])

    def _next_record(self) -> bytes:
        """The content of one of the handshake; b"": it is not whole yet."""
        while True:
            head = self.data[self._at : self._at + 5]
            changes = self._may_change_cipher and head[:1] == bytes((CHANGE_CIPHER,))
            if (head and not changes and head[0] != HANDSHAKE) or (len(head) > 1 and head[1] != 3):
                raise NoServerName("it does not speak TLS")
            if len(head) < 5:
                return b""
            size = int.from_bytes(head[3:])
            if not 0 < size <= (1 if changes else MOST_RECORD):
                raise NoServerName("its first TLS record has no possible size")
            end = self._at + 5 + size
            if len(self.data) < end:
                return b""
            content = bytes(self.data[self._at + 5 : end])
            self._at = end
            self._records += 1
            if self._records > MOST_RECORDS:
                raise NoServerName("its first TLS message is in too many pieces")
            if not changes:
                return content
            self._may_change_cipher = False


def _name_in(hello: bytes) -> str:
    try:
        return _name(_extensions(hello))
    except _Short:
        raise NoServerName("its first TLS message cannot be read") from None


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
