"""Whether a server asks its client for another ClientHello (RFC 8446, 4.1.4), which may name another host. Pure."""

from __future__ import annotations

from pilotlight_runtime.egress.client_hello import HANDSHAKE, NoServerName

ALERT, SERVER_HELLO = 21, 2
MOST_ALERTS = 4
"""Warnings before the first message."""
ASKS_AGAIN = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random bytes of a ServerHello that is a HelloRetryRequest."""
_RANDOM_AT = 4 + 2
_LEAST = _RANDOM_AT + len(ASKS_AGAIN)


class AnswerReader:
    """Takes a server's first bytes as they come."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._alerts = 0

    def add(self, data: bytes) -> bool | None:
        """Whether it asks for another hello; None: there must be more bytes.

        Raises:
            NoServerName: it cannot be told.
        """
        self._data += data
        while len(self._data) >= 5:
            kind, size = self._data[0], int.from_bytes(self._data[3:5])
            if kind == ALERT and size == 2 and self._alerts < MOST_ALERTS:
                if len(self._data) < 7:
                    return None
                del self._data[:7]
                self._alerts += 1
                continue
            if kind != HANDSHAKE or size < _LEAST:
                raise NoServerName("its server does not answer with TLS")
            hello = self._data[5 : 5 + _LEAST]
            if len(hello) < _LEAST:
                return None
            if hello[0] != SERVER_HELLO:
                raise NoServerName("its server's first TLS message is no ServerHello")
            return hello[_RANDOM_AT:] == ASKS_AGAIN
        return None
