"""Frames between an engine and its child: JSON in lines, over a pair of sockets of their own.

Logs of libraries go to the standard outputs, so those carry no frames. JSON, since the child's environment has the
standard library at least; both ends come from one installation, and the child is as trusted as the engine.
"""

from __future__ import annotations

import json
import socket
from typing import Any

READ = 1 << 16
SEND_S = 60.0
"""A child that reads nothing for so long is taken for dead."""
MAX_LINE = 64 << 20
"""A prompt of a million tokens is a tenth of it."""


class ChildGone(Exception):
    """The other end is closed."""


class FramePipe:
    """One end, with what was read of it and is not a whole line yet."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._read = bytearray()

    def send(self, frame: dict[str, Any]) -> None:
        """Write one frame, whole."""
        try:
            self._end.settimeout(SEND_S)
            self._end.sendall(json.dumps(frame, separators=(",", ":")).encode() + b"\n")
        except OSError as error:
            raise ChildGone(str(error)) from error

    def receive(self, timeout_s: float) -> list[dict[str, Any]]:
        """The frames that are there; waits for the first of them, but no longer than said."""
        frames = self._whole()
        while not frames:
            try:
                self._end.settimeout(timeout_s)
                piece = self._end.recv(READ)
            except (BlockingIOError, TimeoutError):
                break
            except OSError as error:
                raise ChildGone(str(error)) from error
            if not piece:
                raise ChildGone("the other end is closed")
            self._read += piece
            if len(self._read) > MAX_LINE:
                raise ChildGone("a frame has no end")
            frames = self._whole()
        return frames

    def close(self) -> None:
        """Close this end."""
        self._end.close()

    def _whole(self) -> list[dict[str, Any]]:
        lines, found, rest = self._read.rpartition(b"\n")
        if not found:
            return []
        self._read = bytearray(rest)
        return [json.loads(line) for line in lines.split(b"\n")]
