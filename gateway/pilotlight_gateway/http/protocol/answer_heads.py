"""The bytes of answers that are written at once."""

from __future__ import annotations

from collections.abc import Mapping

from pilotlight_gateway.http.protocol.problem_answers import Headers

HEAD_END = b"\r\n\r\n"
LAST_HEAD_END = b"\r\nconnection: close\r\n\r\n"


class AnswerHeads:
    """How answers begin: the status line, and the headers that all of a server have."""

    def __init__(self, status_lines: Mapping[int, bytes]) -> None:
        self._status_lines = status_lines
        self._defaults: Headers | None = None
        self._begins: dict[int, bytes] = {}

    def whole(self, defaults: Headers, status: int, lines: bytes, body: bytes, *, keep_alive: bool) -> bytes:
        """A whole answer; `defaults` are replaced by others each second, and not changed."""
        if defaults is not self._defaults:
            self._defaults = defaults
            self._begins.clear()
        begin = self._begins.get(status)
        if begin is None:
            own = b"".join(name + b": " + value + b"\r\n" for name, value in defaults)
            begin = self._begins[status] = self._status_lines[status] + own
        return b"".join((begin, lines, HEAD_END if keep_alive else LAST_HEAD_END, body))
