"""The agent's side of the proxy: ways out are opened and closed here, and its process is kept alive.

The process is started with the first way. The agent keeps each container's listening socket: when the process dies, its
connections end, and those that come wait for the next one. One that says nothing for a while is killed.
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
from pathlib import Path

import msgspec
import structlog

from pilotlight_runtime.egress.egress_proxy import SWEEP_S
from pilotlight_runtime.egress.function_counts import EgressCounts, FunctionCounts
from pilotlight_runtime.egress.proxy_messages import (
    MOST_PACKET,
    CloseWay,
    CountedBytes,
    FromProxy,
    OpenWay,
    ToProxy,
)
from pilotlight_runtime.sandbox.descriptors import refuse_descriptors
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
NO_SEARCH = {"LOCALDOMAIN": "."}
"""For the C library: names are whole, and no domain of the host's is put behind one that nobody knows."""
START_BEATS = 60
"""Until a process has said something for the first time."""
BEATS_MISSED = 5
"""Later on; counted, not measured: an agent that was held up itself blames nobody."""
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(FromProxy)


class ProxySupervisor:
    """Opens and closes the ways out of containers, and runs their proxy. `allow`: networks, though not public."""

    def __init__(self, allow: str = "", *, command: Sequence[str] | None = None, beat_s: float = SWEEP_S) -> None:
        self._command = command or (sys.executable, "-I", "-m", "pilotlight_runtime.egress")
        self._allow = allow
        self._ways: dict[str, tuple[OpenWay, socket.socket]] = {}
        self._counts = FunctionCounts()
        self._beat_s = beat_s
        self._beats_left = START_BEATS
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
        self._counts.open(way.container, way.tenant, way.function)
        self._send(way, listener.fileno())
        self._wanted.set()

    def close(self, container: str) -> None:
        """End a container's way out; one that has none is as it was."""
        known = self._ways.pop(container, None)
        if known is not None:
            self._send(CloseWay(container=container))
            known[1].close()
            self._counts.close(container, asyncio.get_running_loop().time())

    @property
    def counts(self) -> dict[str, EgressCounts]:
        """By function; those for which there is no place together."""
        return self._counts.counts

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
            refuse_descriptors(ours)
            with theirs:
                self._start(theirs.fileno())
            ours.setblocking(False)  # noqa: FBT003 - its only argument
            loop, ended = asyncio.get_running_loop(), asyncio.Event()
            self._control, self._beats_left = ours, START_BEATS
            self._counts.restart()
            loop.add_reader(ours.fileno(), self._on_packet, ended)
            try:
                for way, listener in self._ways.values():
                    self._send(way, listener.fileno())
                await self._watch(ended)
            finally:
                self._control = None
                loop.remove_reader(ours.fileno())
                loop.remove_writer(ours.fileno())
                self._drop_outbox()
                self._end()

    async def _watch(self, ended: asyncio.Event) -> None:
        """Return once the process has ended, or says nothing any more: what holds it up holds up all its containers."""
        loop = asyncio.get_running_loop()
        while not ended.is_set() and self._beats_left > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._beat_s):
                    await ended.wait()
            self._beats_left -= 1
            self._counts.forget(loop.time())
        if not ended.is_set():
            log.error("the proxy of this node's containers says nothing any more, and is killed")

    def _start(self, control: int) -> None:
        """On this thread, since the kernel ends it with the thread that started it."""
        words = [*self._command, str(control), str(os.getpid())]
        if self._allow:
            words += ["--allow", self._allow]
        # Nothing of the agent's environment, which has its password for the bus.
        env = {**ENV, **NO_SEARCH}
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=(control,), cwd="/", env=env)
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
            said = _decoder.decode(data) if data else None
        except msgspec.DecodeError:
            said = None
        if said is None:  # gone, or no longer what the agent started
            ended.set()
            return
        self._beats_left = BEATS_MISSED
        if isinstance(said, CountedBytes):
            self._add(said)

    def _add(self, counted: CountedBytes) -> None:
        function = self._counts.add(counted, asyncio.get_running_loop().time())
        if function and counted.is_last:
            log.info(
                "a container's way out has ended", container=counted.container, function=function,
                sent_bytes=counted.sent, received_bytes=counted.received, connections=counted.connections,
                refused=counted.refused,
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
        refuse_descriptors(made)
        made.listen(WAITING)
    except BaseException:
        made.close()
        raise
    return made
