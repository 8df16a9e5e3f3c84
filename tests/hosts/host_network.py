"""Hosts on one machine: network namespaces at a switch, which share nothing but it.

Each namespace is kept by one process that dies with the test, also when that is killed: no namespace has a name, so the
kernel takes them away with all links once nobody is inside.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.forked_module import ForkedModule
from tests.module_forks import MODULES
from tests.waiting import wait_until

#: For tests of networks (RFC 2544): nobody's.
NETWORKS = "198.18.{}.0/24"
NOBODY = "02:00:00:00:00:01"
"""No host has this MAC: what is sent to it is lost without a word, as in a partition."""
END_S = 60.0
"""For a process to end on SIGTERM, with what it finishes before."""
MUST = "PILOTLIGHT_TESTS_NEED_NAMESPACES"
"""Set where a kernel that makes no network namespaces is a failure, and no reason to skip."""
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")


@dataclass(kw_only=True)
class TestHost:
    """A host: an address, a folder and processes of its own."""

    __test__ = False

    name: str
    address: str
    folder: Path
    namespace: int
    """The process that keeps it."""
    running: dict[str, subprocess.Popen[bytes] | ForkedModule] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Addresses by name, which processes find that are started from now on; this machine's others do not."""

    def start(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> None:
        """Run a process here; its log is in the host's folder. Its environment is `env`, and what finds programs."""
        whole = {key: os.environ[key] for key in ("PATH", "PYTHONPATH", "HOME") if key in os.environ} | dict(env)
        names = self._file_of_names()
        with (self.folder / f"{name}.log").open("ab") as log:
            is_ours = list(command[:2]) == [sys.executable, "-m"] and "PYTHONPATH" not in env
            if is_ours and command[2] in MODULES:
                network = f"/proc/{self.namespace}/ns/net"
                self.running[name] = ForkedModule(
                    command[2:], env=whole, cwd=self.folder, log=log.fileno(), network=network, names=names
                )
                return
            mounted = 'mount --bind "$0" /etc/hosts && exec "$@"'
            with_names = ("unshare", "--mount", "--", "sh", "-c", mounted, names) if names else ()
            self.running[name] = subprocess.Popen(
                [*inside(self.namespace), *DIES_WITH_US, *with_names, *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, env=whole,
            )  # fmt: skip

    def _file_of_names(self) -> str:
        if not self.names:
            return ""
        file = self.folder / "hosts"
        file.write_text("".join(f"{address} {name}\n" for name, address in self.names.items()))
        return str(file)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def kill(self, name: str) -> None:
        """kill -9."""
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def end(self, name: str) -> int:
        """SIGTERM; its exit code."""
        process = self.running.pop(name)
        process.terminate()
        return process.wait(END_S)

    def stop(self) -> None:
        """All that runs here, in turn; whoever does not end in time is killed."""
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        for process in self.running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15.0)
            process.kill()
            process.wait()
        self.running.clear()


class HostNetwork:
    """A switch at which hosts are; the test has an address at it too."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder = folder
        self._network = NETWORKS.format(number)
        self._prefix = self._network.removesuffix("0/24")
        self._numbers = itertools.count(10)
        self._kept: list[subprocess.Popen[bytes]] = []
        self._switch = self._namespace()
        self.hosts: dict[str, TestHost] = {}
        self.own_address = f"{self._prefix}1"
        self.interface = f"pl{secrets.token_hex(5)}"
        self._at_switch("ip", "link", "add", "br0", "type", "bridge", "forward_delay", "0")
        self._at_switch("ip", "link", "set", "br0", "up")
        run("ip", "link", "add", self.interface, "type", "veth", "peer", "name", "own", "netns", str(self._switch))
        run("ip", "address", "add", f"{self.own_address}/24", "dev", self.interface)
        run("ip", "link", "set", self.interface, "up")
        self._at_switch("ip", "link", "set", "own", "master", "br0", "up")

    def add(self, name: str) -> TestHost:
        """A new host at the switch."""
        folder, number, namespace = self._folder / name, next(self._numbers), self._namespace()
        folder.mkdir()
        host = TestHost(name=name, address=f"{self._prefix}{number}", folder=folder, namespace=namespace)
        port = f"p{number}"
        self._at_switch("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(namespace))
        self._at_switch("ip", "link", "set", port, "master", "br0", "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"{host.address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            run(*inside(namespace), "ip", *words)
        self.hosts[name] = host
        return host

    @contextmanager
    def apart(self, one: TestHost, other: TestHost) -> Iterator[None]:
        """What these two send each other is lost; all others reach both."""
        for here, there in ((one, other), (other, one)):
            run(*inside(here.namespace), "ip", "neigh", "replace", there.address, "lladdr", NOBODY, "dev", "eth0",
                "nud", "permanent")  # fmt: skip
        try:
            yield
        finally:
            for here, there in ((one, other), (other, one)):
                run(*inside(here.namespace), "ip", "neigh", "del", there.address, "dev", "eth0")

    @contextmanager
    def cut_off(self, one: TestHost, others: Iterable[TestHost]) -> Iterator[None]:
        """What it and each of these send each other is lost."""
        with ExitStack() as parted:
            for other in others:
                parted.enter_context(self.apart(one, other))
            yield

    def close(self) -> None:
        """End everything; the kernel takes namespaces and links away."""
        for host in reversed(self.hosts.values()):
            host.stop()
        for keeper in self._kept:
            keeper.kill()
            keeper.wait()
        subprocess.run(["ip", "link", "delete", self.interface], check=False, capture_output=True)

    def _namespace(self) -> int:
        keeper = subprocess.Popen(["unshare", "--net", "--", *DIES_WITH_US, "sleep", "infinity"])
        self._kept.append(keeper)
        ours = Path("/proc/self/ns/net").readlink()
        own = Path(f"/proc/{keeper.pid}/ns/net")
        wait_until(lambda: keeper.poll() is not None or own.readlink() != ours, "a namespace is made", 10.0)
        assert keeper.poll() is None
        return keeper.pid

    def _at_switch(self, *command: str) -> None:
        run(*inside(self._switch), *command)


def _free_number() -> int:
    """Of a network in which this machine has no address: several may be there at a time."""
    addresses = subprocess.run(["ip", "-4", "-o", "address"], check=True, capture_output=True, text=True).stdout
    return secrets.choice([n for n in range(1, 256) if NETWORKS.format(n).replace(".0/", ".1/") not in addresses])


def inside(namespace: int) -> tuple[str, ...]:
    """What runs the command behind it there."""
    return ("nsenter", f"--net=/proc/{namespace}/ns/net", "--")


def run(*command: str) -> None:
    """Raises AssertionError, with what the command has said."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"


def why_no_namespaces() -> str:
    """What the kernel says to who wants a network namespace; "": it makes them."""
    tried = subprocess.run(["unshare", "--net", "true"], check=False, capture_output=True, text=True)
    return (tried.stderr.strip() or "unshare has failed") if tried.returncode else ""


def need_namespaces(why: str, env: Mapping[str, str]) -> None:
    """Skip the test for this reason, if there is one; where the environment says that none counts, it fails."""
    if why:
        (pytest.fail if env.get(MUST) else pytest.skip)(f"this machine makes no network namespaces: {why}")


@contextmanager
def host_network(folder: Path) -> Iterator[HostNetwork]:
    """A network for one test, which is skipped, or fails (`MUST`), where there can be none."""
    need_namespaces(why_no_namespaces(), os.environ)
    network = HostNetwork(folder, _free_number())
    try:
        yield network
    finally:
        network.close()
