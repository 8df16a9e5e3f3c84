"""The process of the proxy: it ends with its agent, and has no rights but to connect.

What it reads comes from tenants, so it is no part of the agent: what goes wrong here holds up nobody's calls, and what
takes it over finds neither keys nor the bus.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import os
import resource
import signal
import socket
import sys
from contextlib import suppress

import msgspec
import structlog
import uvloop

from pilotlight_core.host import telemetry
from pilotlight_core.host.outbound.address_policy import Network, read_networks
from pilotlight_core.host.outbound.name_resolver import DnsResolver
from pilotlight_runtime.egress.egress_proxy import SWEEP_S, EgressProxy
from pilotlight_runtime.egress.pinned_connections import PinnedConnections
from pilotlight_runtime.egress.proxy_messages import (
    MOST_PACKET,
    CloseWay,
    FromProxy,
    OpenWay,
    ProxyBeat,
    ToProxy,
)

log = structlog.get_logger(__name__)

NOBODY = 65_534
OPEN_FILES = 8192
"""Two for each connection, one for each container; name servers take some."""
NICER = 5
"""What is sent through the proxy waits for the agent and its calls where there are too few cores, not they for it."""
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(ToProxy)


class ProxyProcess:
    """Does what the agent says over `control`, until that ends."""

    def __init__(self, control: socket.socket, proxy: EgressProxy) -> None:
        self._control = control
        self._proxy = proxy
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Serve until the agent is gone."""
        self._control.setblocking(False)  # noqa: FBT003 - its only argument
        loop = asyncio.get_running_loop()
        loop.add_reader(self._control.fileno(), self._on_packet)
        try:
            while not self._ended.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(SWEEP_S):
                        await self._ended.wait()
                self._proxy.sweep(loop.time())
                for counted in self._proxy.changed_counts():
                    self._send(counted)
                self._send(ProxyBeat())
        finally:
            loop.remove_reader(self._control.fileno())

    def _on_packet(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._control, MOST_PACKET, 1)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        listeners = [socket.socket(fileno=fd) for fd in fds]
        message = _decoder.decode(data) if data else None
        if isinstance(message, OpenWay) and listeners:
            self._proxy.open(message, listeners.pop())
        elif isinstance(message, CloseWay) and (counted := self._proxy.close(message.container)) is not None:
            self._send(counted)
        elif message is None:
            self._ended.set()

    def _send(self, message: FromProxy) -> None:
        with suppress(OSError):  # the counts are whole each time; an agent that is gone needs none
            self._control.send(_encoder.encode(message))


async def serve(control: socket.socket, allowed: tuple[Network, ...]) -> None:
    """Serve until the agent is gone."""
    names, clock = DnsResolver(), asyncio.get_running_loop().time
    try:
        async with asyncio.TaskGroup() as group:
            pinned = PinnedConnections(names.addresses, allowed, clock)
            await ProxyProcess(control, EgressProxy(pinned, group, clock=clock)).run()
            raise _Over
    except* _Over:
        pass
    finally:
        names.close()


class _Over(Exception):
    """The agent is gone."""


def drop_rights(agent: int) -> None:
    """Become nobody, and end with the agent of this pid even if nothing runs here any more."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((PR_SET_NO_NEW_PRIVS, 1), (PR_SET_PDEATHSIG, signal.SIGKILL)):
        if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != agent:
        raise OSError("the agent has gone meanwhile")


def main() -> None:
    """Serve on the socket whose number is the first argument."""
    reader = argparse.ArgumentParser(prog="pilotlight_runtime.egress", description="The proxy of one agent.")
    reader.add_argument("control", type=int)
    reader.add_argument("agent", type=int)
    reader.add_argument("--allow", default="")
    options = reader.parse_args()
    telemetry.setup("egress")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the agent says when it is over
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    control, allowed = socket.socket(fileno=options.control), read_networks(options.allow, "egress_allow")
    "".encode("idna")
    os.nice(NICER)
    drop_rights(options.agent)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(control, allowed))
    sys.stderr.flush()
    os._exit(0)  # threads that ask name servers must not hold it up
