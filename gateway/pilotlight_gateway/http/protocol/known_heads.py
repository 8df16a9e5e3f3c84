"""Heads of requests that were parsed, by their bytes: most clients send the same one again and again."""

from __future__ import annotations

from typing import Any, NamedTuple

from pilotlight_gateway.http.protocol.http_exchange import HEAD_END, WholeRequests

KNOWN_AT_MOST = 1_024
"""Of all connections together."""
LONGEST_KNOWN = 2_048


class KnownHead(NamedTuple):
    """A head that was parsed, and the length of the body that it announces."""

    head: Any
    length: int


class KnownHeads:
    """Who takes whole requests, and the heads of those that were taken."""

    def __init__(self, requests: WholeRequests[Any]) -> None:
        self.requests = requests
        self.known: dict[bytes, KnownHead] = {}

    def note(self, read: bytes, head: Any, body: bytes) -> None:
        """One read from a socket was a head and its body, unless there is more to it."""
        end = read.find(HEAD_END) + len(HEAD_END)
        if end > LONGEST_KNOWN or len(read) - end != len(body) or head.traceparent:
            return  # one with a trace comes once
        if len(self.known) >= KNOWN_AT_MOST:
            self.known.clear()
        self.known[read[:end]] = KnownHead(head, len(body))
