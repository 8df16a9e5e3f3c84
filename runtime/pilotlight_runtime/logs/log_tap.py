"""The two output pipes of one sandbox, read as they fill and passed on as log lines."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_core.model.messages.logs import LogLine
from pilotlight_core.model.secrets.secret_masks import NO_MASK, SecretMask
from pilotlight_runtime.logs.log_lines import DEFAULT_CAP, LineSplitter, LogRateLimit, LogRateLimiter

READ_BYTES = 64 * 1024
"""A pipe's capacity: one read empties it."""
FINAL_READS = 64
"""Reads of a pipe after its container's end: 4 MiB, more than a pipe holds by default."""


class PipeRead(Enum):
    SOMETHING = auto()
    NOTHING = auto()  # for now
    END = auto()  # every writer has closed it


@dataclass(kw_only=True)
class _Pipe:
    fd: int
    stream: str
    splitter: LineSplitter


class LogTap:
    """Reads until `close()`; `sink` gets every line within the cap, and a line that counts the dropped ones."""

    def __init__(
        self,
        *,
        stdout_fd: int,
        stderr_fd: int,
        container: str,
        sink: Callable[[LogLine], None],
        cap: LogRateLimit = DEFAULT_CAP,
    ) -> None:
        self.container = container
        self.running: Callable[[], str] = str
        """Returns the id of the one call that the container works on; "" for none or several."""
        self.sink = sink
        self._mask = NO_MASK
        self._cap = LogRateLimiter(cap)
        self._loop = asyncio.get_running_loop()
        self._open: dict[int, _Pipe] = {}
        for fd, stream in ((stdout_fd, "stdout"), (stderr_fd, "stderr")):
            self._open[fd] = _Pipe(fd=fd, stream=stream, splitter=LineSplitter())
            self._loop.add_reader(fd, self._readable, fd)

    def hide(self, mask: SecretMask) -> None:
        """Hide these values in all lines from now on."""
        self._mask = mask
        for pipe in self._open.values():
            pipe.splitter.mask = mask

    def tick(self, at: float) -> None:
        if sentence := self._cap.report(at):
            self.log(sentence)

    def log(self, sentence: str) -> None:
        self.sink(LogLine(time.time(), "platform", self._mask.hide(sentence), self.container))

    def log_failure(self, call_id: str, error: RemoteError) -> None:
        """Put a call's error into the container's log; the cap counts its lines."""
        at, now = time.monotonic(), time.time()
        text = error.traceback or f"{error.type}: {error.message}"
        for one in LineSplitter(self._mask).feed(text.encode(errors="replace") + b"\n"):
            if one:
                self._sink_within_cap(LogLine(now, "platform", one, self.container, call_id), at)

    def close(self) -> None:
        """Read the rest of the pipes and stop watching them; their owner closes them."""
        for pipe in list(self._open.values()):
            for _ in range(FINAL_READS):
                if self._read(pipe) is not PipeRead.SOMETHING:
                    break
            self._pass_on(pipe, pipe.splitter.rest())
            self._forget(pipe)
        if sentence := self._cap.final():
            self.log(sentence)

    def _readable(self, fd: int) -> None:
        pipe = self._open[fd]
        if self._read(pipe) is PipeRead.END:
            self._pass_on(pipe, pipe.splitter.rest())
            self._forget(pipe)

    def _read(self, pipe: _Pipe) -> PipeRead:
        try:
            data = os.read(pipe.fd, READ_BYTES)
        except BlockingIOError:
            return PipeRead.NOTHING
        except OSError:
            return PipeRead.END
        if not data:
            return PipeRead.END
        if self._cap.full(time.monotonic()):
            self._cap.drop(pipe.splitter.skip(data), len(data))
        else:
            self._pass_on(pipe, pipe.splitter.feed(data))
        return PipeRead.SOMETHING

    def _pass_on(self, pipe: _Pipe, lines: list[str]) -> None:
        at, now, call = time.monotonic(), time.time(), self.running()
        for text in lines:
            self._sink_within_cap(LogLine(now, pipe.stream, text, self.container, call), at)

    def _sink_within_cap(self, line: LogLine, at: float) -> None:
        if self._cap.admit(line.text_bytes + 1, at):
            self.sink(line)

    def _forget(self, pipe: _Pipe) -> None:
        self._loop.remove_reader(pipe.fd)
        del self._open[pipe.fd]
