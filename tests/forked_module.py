"""A process of the platform as a fork of `tests.module_forks`, which spares it a second of imports."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.fork_servers import fork_server

NUMBER = 4
"""Bytes of a pid, or of an exit code."""


class ForkedModule:
    """`python -m words`, with the verbs of `subprocess.Popen` that tests use."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        log: int,
        network: str = "",
        names: str = "",
    ) -> None:
        """`network`: the file of a namespace, in which it runs; `names`: what is its /etc/hosts there."""
        self.args = words
        self.returncode: int | None = None
        asked = {"words": list(words), "env": dict(env), "cwd": str(cwd), "network": network, "names": names}
        request = json.dumps(asked).encode()
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(fork_server("module_forks")))
        socket.send_fds(self._connection, [len(request).to_bytes(NUMBER, "big")], [log])
        self._connection.sendall(request)
        self.pid = int.from_bytes(self._connection.recv(NUMBER, socket.MSG_WAITALL), "big")
        assert self.pid, "nothing was forked"

    def poll(self) -> int | None:
        """Its exit code, below 0 for a signal; None while it runs."""
        try:
            return self.wait(0.0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended.

        Raises:
            TimeoutExpired: it has not, within these seconds.
        """
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                code = self._connection.recv(NUMBER)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0) from None
            self._connection.close()
            assert len(code) == NUMBER, "what forks has ended before"
            self.returncode = int.from_bytes(code, "big", signed=True)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Signal it, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
