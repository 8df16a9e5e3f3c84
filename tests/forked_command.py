"""A command of the command line as a fork of `tests.command_forks`, which spares it half a second of imports.

Run as a program with a socket and words, this is the command: same output, same exit code. It imports nothing else of
the tests, so that such a program starts in 20 ms.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence

DIED = 137
"""The exit code of a command that was killed."""


def start(
    at: str,
    words: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    files: Sequence[int],
    program: str | None = None,
) -> socket.socket:
    """Start a command, or a program, with `files` as its standard input, output and error; what `ended` waits for.

    It is killed if this process ends before it.
    """
    request = json.dumps({"words": list(words), "program": program, "env": dict(env), "cwd": cwd}).encode()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(at)
    socket.send_fds(connection, [len(request).to_bytes(4, "big")], files)
    connection.sendall(request)
    return connection


def ended(connection: socket.socket) -> int:
    """Wait for the end of a command; its exit code."""
    with connection:
        code = connection.recv(1)
    return code[0] if code else DIED


if __name__ == "__main__":
    sys.exit(ended(start(sys.argv[1], sys.argv[2:], os.environ, os.getcwd(), (0, 1, 2))))  # noqa: PTH109 - pathlib is
