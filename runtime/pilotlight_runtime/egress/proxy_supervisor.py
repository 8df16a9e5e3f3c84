"""The agent's side of the proxy: ways out are opened and closed here, and its process is kept alive.

The process is started with the first way. The agent keeps each container's listening socket: when the process dies, its
connections end, and those that come wait for the next one.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog

from pilotlight_runtime.egress.proxy_messages import MOST_PACKET, CloseWay, CountedBytes, OpenWay, ToProxy
from pilotlight_runtime.sandbox.exec_chain import ENV

log = structlog.get_logger(__name__)

SOCKET = "proxy.sock"
"""In a container's folder of its own."""
WAITING = 64
"""Connections of a container that are not taken yet."""
PAUSES_S = (0.1, 0.5, 2.0, 10.0)
"""Between starts, when the process dies at once again."""
STEADY_S = 60.0
"""One that has lived so long was no failed start."""
COUNTS_KEPT = 256
"""Functions that are counted apart."""
OTHERS = "other"
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(CountedBytes)


@dataclass(frozen=True)
class EgressCounts:
    """Of a function, on this node, since the agent began."""

    sent_bytes: int = 0
    received_bytes: int = 0
    connections: int = 0
    refused: int = 0

    def __add__(self, other: EgressCounts) -> EgressCounts:
        return EgressCounts(
            self.sent_bytes + other.sent_bytes,
            self.received_bytes + other.received_bytes,
            self.connections + other.connections,
            self.refused + other.refused,
        )

    def __sub__(self, other: EgressCounts) -> EgressCounts:
        return self + EgressCounts(-other.sent_bytes, -other.received_bytes, -other.connections, -other.refused)


class ProxySupervisor:
    """Opens and closes the ways out of containers, and runs their proxy. `allow`: networks, though not public."""

    def __init__(self, allow: str = "", *, command: Sequence[str] | None = None) -> None:
        self._command = command or (sys.executable, "-I", "-m", "pilotlight_runtime.egress")
        self._allow = allow
        self._ways: dict[str, tuple[OpenWay, socket.socket]] = {}
        self._counted: dict[str, tuple[str, EgressCounts]] = {}
        """By container: its function, and what this process of the proxy has said of it."""
        self._functions: dict[str, EgressCounts] = {}
        self._wanted = asyncio.Event()
        self._control: socket.socket | None = None
        self._outbox: deque[tuple[bytes, int | None]] = deque()
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def open(self, way: OpenWay, folder: Path) -> None:
        """Give a container a way out, through a socket in a folder of its own.

        Raises:
            OSError: there is no room for it.
        """
        self.close(way.container)
        listener = listening_socket(folder)
        self._ways[way.container] = way, listener
        self._counted[way.container] = way.function, EgressCounts()
        self._send(way, listener.fileno())
        self._wanted.set()

    def close(self, container: str) -> None:
        """End a container's way out; one that has none is as it was."""
        known = self._ways.pop(container, None)
        if known is not None:
            self._send(CloseWay(container=container))
            known[1].close()

    @property
    def counts(self) -> dict[str, EgressCounts]:
        """By function; those beyond COUNTS_KEPT together."""
        return dict(self._functions)

    def targets_of(self, container: str) -> tuple[str, ...]:
        """What a container is let out to."""
        return self._ways[container][0].targets if container in self._ways else ()

    @property
    def open_ways(self) -> int:
        return len(self._ways)

    async def run(self) -> None:
        """Keep the process alive from the first way on, until cancelled."""
        await self._wanted.wait()
        failures, loop = 0, asyncio.get_running_loop()
        while True:
            began_at = loop.time()
            try:
                await self._run_once()
            except OSError as error:
                log.error("the proxy of this node's containers cannot start", error=str(error))
            failures = 0 if loop.time() - began_at >= STEADY_S else failures + 1
            log.warning("the proxy of this node's containers has ended, and is started again", failures=failures)
            await asyncio.sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)])

    async def _run_once(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                self._start(theirs.fileno())
            ours.setblocking(False)  # noqa: FBT003 - its only argument
            loop, ended = asyncio.get_running_loop(), asyncio.Event()
            self._control = ours
            self._counted = {way.container: (way.function, EgressCounts()) for way, _ in self._ways.values()}
            loop.add_reader(ours.fileno(), self._on_packet, ended)
            try:
                for way, listener in self._ways.values():
                    self._send(way, listener.fileno())
                await ended.wait()
            finally:
                self._control = None
                loop.remove_reader(ours.fileno())
                loop.remove_writer(ours.fileno())
                self._drop_outbox()
                self._end()

    def _start(self, control: int) -> None:
        """On this thread, since the kernel ends it with the thread that started it."""
        words = [*self._command, str(control), str(os.getpid())]
        if self._allow:
            words += ["--allow", self._allow]
        # Nothing of the agent's environment, which has its password for the bus.
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=(control,), cwd="/", env=ENV)
        self.starts += 1

    def _on_packet(self, ended: asyncio.Event) -> None:
        control = self._control
        if control is None:
            return
        try:
            data = control.recv(MOST_PACKET)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        try:
            counted = _decoder.decode(data) if data else None
        except msgspec.DecodeError:
            counted = None
        if counted is None:  # gone, or no longer what the agent started
            ended.set()
        else:
            self._add(counted)

    def _add(self, counted: CountedBytes) -> None:
        known = self._counted.get(counted.container)
        if known is None:
            return
        function, before = known
        now = EgressCounts(counted.sent, counted.received, counted.connections, counted.refused)
        name = function if function in self._functions or len(self._functions) < COUNTS_KEPT else OTHERS
        self._functions[name] = self._functions.get(name, EgressCounts()) + (now - before)
        self._counted[counted.container] = function, now
        if counted.is_last:
            del self._counted[counted.container]
            log.info(
                "a container's way out has ended", container=counted.container, function=function,
                sent_bytes=now.sent_bytes, received_bytes=now.received_bytes, connections=now.connections,
                refused=now.refused,
            )  # fmt: skip

    def _end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()  # it holds no device, so nothing keeps it from ending

    def _send(self, message: ToProxy, fd: int | None = None) -> None:
        """Without a process it is not sent: the next one is told of all ways."""
        if self._control is not None:
            self._outbox.append((_encoder.encode(message), None if fd is None else os.dup(fd)))
            self._flush()

    def _flush(self) -> None:
        """Send what waits, as far as the socket takes it; the rest when it does again."""
        control = self._control
        if control is None:
            return
        loop = asyncio.get_running_loop()
        while self._outbox:
            data, fd = self._outbox[0]
            try:
                socket.send_fds(control, [data], [] if fd is None else [fd])
            except BlockingIOError:
                loop.add_writer(control.fileno(), self._flush)
                return
            except OSError:  # it has ended, which its reader sees
                self._drop_outbox()
                break
            self._outbox.popleft()
            if fd is not None:
                os.close(fd)
        loop.remove_writer(control.fileno())

    def _drop_outbox(self) -> None:
        for _, fd in self._outbox:
            if fd is not None:
                os.close(fd)
        self._outbox.clear()


def listening_socket(folder: Path) -> socket.socket:
    """A socket in a folder, which everybody may connect to who can walk there. Raises OSError."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        at = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        try:  # by the folder's descriptor: a path of a socket has 108 bytes at most
            name = f"/proc/self/fd/{at}/{SOCKET}"
            with suppress(FileNotFoundError):
                (folder / SOCKET).unlink()
            made.bind(name)
            (folder / SOCKET).chmod(0o666)  # the container's host uid is another
        finally:
            os.close(at)
        made.listen(WAITING)
    except BaseException:
        made.close()
        raise
    return made
