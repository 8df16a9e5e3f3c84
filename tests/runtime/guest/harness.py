"""A real guest in a process of its own, driven by frames over a socket pair, without a sandbox."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from pilotlight_core.model import values
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_runtime.guest.frames import (
    ChunkOut,
    FrameDecoder,
    FromGuest,
    GuestFrame,
    Hello,
    Invoke,
    Leave,
    Load,
    Loaded,
    LoadError,
    Result,
    encode,
)

APPS = Path(__file__).parent / "apps"
PATIENCE_S = 45.0
"""How long a test waits for what must come, on a machine that does other things too."""


def spec_of(thing: Any, **changes: Any) -> FunctionSpec:
    """The spec of a decorated function or class, as it is when its app is deployed from `apps/`."""
    spec: FunctionSpec = thing.spec
    return msgspec.structs.replace(spec, module=spec.module.rpartition(".")[2], **changes)


class Guest:
    """A blank when made, the function after `load`, and gone after `with`."""

    def __init__(self, *, preimport: str = "", early: GuestFrame | None = None) -> None:
        ours, theirs = socket.socketpair()
        if early is not None:
            ours.sendall(encode(early))
        ours.settimeout(PATIENCE_S)
        self.socket = ours
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-m", "pilotlight_runtime.guest"],
            pass_fds=[theirs.fileno()],
            env={"PATH": os.environ["PATH"], "PL_FD": str(theirs.fileno()), "PL_PREIMPORT": preimport},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        theirs.close()
        self._inbox = FrameDecoder(FromGuest)
        self._frames: list[Any] = []
        try:
            hello = self.receive()
            assert isinstance(hello, Hello)
        except BaseException:
            self.process.kill()
            self.__exit__(None, None, None)
            raise
        self.hello = hello

    def __enter__(self) -> Guest:
        return self

    def __exit__(
        self, cls: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()  # it ends with its agent
        if self.process.poll() is None and cls is not None:
            self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)

    def send(self, *frames: GuestFrame) -> None:
        self.socket.sendall(b"".join(encode(frame) for frame in frames))

    def receive(self) -> Any:
        """The next frame. Raises EOFError when there is none any more."""
        while not self._frames:
            count = self.socket.recv_into(self._inbox.space())
            if not count:
                raise EOFError
            self._frames += self._inbox.filled(count)
        return self._frames.pop(0)

    def load(self, spec: FunctionSpec, **more: Any) -> list[Any]:
        """Make it the function; returns the frames up to Loaded or LoadError."""
        self.send(Load(spec=spec, root=str(APPS), **more))
        frames = [self.receive()]
        while not isinstance(frames[-1], Loaded | LoadError):
            frames.append(self.receive())
        return frames

    def invoke(self, call: str, method: str = "", *, window: int = 256, **named: Any) -> None:
        self.send(Invoke(call_id=call, method=method, input=values.encode(named), window=window))

    def result(self) -> Result:
        """The next frame, which is a Result."""
        frame = self.receive()
        assert isinstance(frame, Result), frame
        return frame

    def call(self, method: str = "", **named: Any) -> Any:
        """The value that a call answers."""
        self.invoke("call", method, **named)
        result = self.result()
        assert result.error is None, result.error.traceback or result.error.message
        return values.decode(result.output)

    def chunks(self) -> tuple[list[Any], Result]:
        """The chunks of the stream that runs, and its Result."""
        chunks: list[Any] = []
        while isinstance(frame := self.receive(), ChunkOut):
            assert frame.seq == len(chunks) + 1
            chunks.append(values.decode(frame.data))
        assert isinstance(frame, Result), frame
        return chunks, frame

    def line(self) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def leave(self) -> tuple[int, str, str]:
        """Let it end in order; returns exit code, stdout and stderr."""
        self.send(Leave())
        return self.end()

    def end(self) -> tuple[int, str, str]:
        """Wait for its end; returns exit code, stdout and stderr."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err
