"""The process of the proxy, and its end with its agent."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pilotlight_runtime.egress.proxy_messages import CloseWay, CountedBytes, FromProxy, OpenWay, ProxyBeat
from pilotlight_runtime.egress.proxy_process import drop_rights
from pilotlight_runtime.egress.proxy_supervisor import SOCKET, listening_socket
from tests.waiting import wait_until

WITHIN_S = 60.0
AGENT = """
import socket, subprocess, sys, os, time
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
words = [sys.executable, "-I", "-m", "pilotlight_runtime.egress", str(theirs.fileno()), str(os.getpid())]
child = subprocess.Popen(words, pass_fds=(theirs.fileno(),))
print(child.pid, flush=True)
time.sleep(600)
"""


def started(control: socket.socket, *flags: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-I", "-m", "pilotlight_runtime.egress", str(control.fileno()), str(os.getpid()), *flags]
    return subprocess.Popen(words, pass_fds=(control.fileno(),), stderr=subprocess.PIPE)


def counted_over(control: socket.socket) -> CountedBytes:
    """The next count, between beats."""
    while True:
        said = msgspec.msgpack.decode(control.recv(1000), type=FromProxy)
        if isinstance(said, CountedBytes):
            return said


def test_it_does_what_it_is_told_until_nobody_tells_it(tmp_path: Path) -> None:
    """Opens, counts, closes; what it cannot read is its agent's mistake, and ends it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, listening_socket(tmp_path) as listener:
        with theirs:
            process = started(theirs)
        ours.settimeout(WITHIN_S)
        way = OpenWay(container="c1", tenant="acme", function="acme:a.f", targets=("api.example.com:443",))
        socket.send_fds(ours, [msgspec.msgpack.encode(way)], [listener.fileno()])
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(WITHIN_S)
            client.connect(str(tmp_path / SOCKET))
            client.sendall(b"CONNECT x.example.com:1 HTTP/1.1\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 403 ")
        counted = counted_over(ours)
        while not counted.refused:
            counted = counted_over(ours)
        assert counted == CountedBytes(container="c1", sent=0, received=0, connections=0, refused=1)
        ours.send(msgspec.msgpack.encode(CloseWay(container="c1")))
        assert counted_over(ours).is_last
        assert isinstance(msgspec.msgpack.decode(ours.recv(1000), type=FromProxy), ProxyBeat)
    assert process.wait(WITHIN_S) == 0
    assert process.stderr is not None
    process.stderr.close()


def test_it_dies_with_a_killed_agent() -> None:
    """kill -9 of the agent leaves nothing."""
    with subprocess.Popen([sys.executable, "-c", AGENT], stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        pid = int(agent.stdout.readline())
        agent.kill()
    wait_until(lambda: not _runs(pid), "the proxy has ended", WITHIN_S)


def test_it_does_not_begin_without_its_agent() -> None:
    """Which may have died before it was asked for: nobody would end it then."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            drop_rights(agent=1 if os.getppid() != 1 else 2)
        except OSError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_of_a_group_do_not_end_it(number: signal.Signals) -> None:
    """Ctrl-C reaches all of a terminal; the agent drains first, and needs it until then."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            process = started(theirs)
        ignored = 1 << (number - 1)

        def ignores() -> bool:
            text = Path(f"/proc/{process.pid}/status").read_text()
            return bool(int(text.partition("SigIgn:\t")[2].split("\n")[0], 16) & ignored)

        wait_until(ignores, "it is ready for signals", WITHIN_S)
        process.send_signal(number)
    assert process.wait(WITHIN_S) == 0
    assert process.stderr is not None
    process.stderr.close()


def _runs(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
