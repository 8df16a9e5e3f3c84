"""The hosts of these tests: they reach each other until they are parted, and nothing stays of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts.host_network import (
    MUST,
    HostNetwork,
    TestHost,
    host_network,
    inside,
    need_namespaces,
    why_no_namespaces,
)
from tests.system.support.processes import descendants, is_alive
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
PROGRAM = """\
import sys, time
from pathlib import Path

import pytest
from tests.hosts.host_network import host_network
with host_network(Path(sys.argv[1])) as network:
    network.add("one").start("sleeper", ["sleep", "600"], {})
    print(network.interface, flush=True)
    time.sleep(600)
"""


def reaches(one: TestHost, other: TestHost) -> bool:
    """Whether a connection is made within a second, or refused: a host that answers is there."""
    look = f"import socket; socket.create_connection(({other.address!r}, 9), 1.0)"
    done = subprocess.run(
        [*inside(one.namespace), sys.executable, "-c", look], check=False, capture_output=True, text=True
    )
    return "ConnectionRefusedError" in done.stderr


def test_hosts_are_parted_two_by_two(tmp_path: Path) -> None:
    """Neither reaches the other, and both the third; then all do again."""

    def who(network: HostNetwork) -> set[tuple[str, str]]:
        hosts = network.hosts.values()
        return {(a.name, b.name) for a in hosts for b in hosts if a is not b and reaches(a, b)}

    with host_network(tmp_path) as network:
        one, other, _ = (network.add(name) for name in ("one", "other", "third"))
        everybody = who(network)
        assert len(everybody) == 6
        with network.apart(one, other):
            assert everybody - who(network) == {("one", "other"), ("other", "one")}
        assert who(network) == everybody


def test_nothing_stays_of_a_network_whose_test_is_killed(tmp_path: Path) -> None:
    """Its processes die with it, and with them namespaces and links."""
    need_namespaces(why_no_namespaces(), os.environ)
    words, env = [sys.executable, "-c", PROGRAM, str(tmp_path)], {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=env) as killed:
        assert killed.stdout is not None
        interface = Path("/sys/class/net") / killed.stdout.readline().strip()
        family = descendants(killed.pid)
        assert interface.exists()
        assert len(family) == 3
        # From then on they have asked to die with it.
        wait_until(lambda: {Path(f"/proc/{pid}/comm").read_text() for pid in family} == {"sleep\n"}, "they all sleep")
        killed.send_signal(signal.SIGKILL)

    wait_until(lambda: not any(map(is_alive, family)), "its processes are gone")
    wait_until(lambda: not interface.exists(), "its link is gone")


def test_a_kernel_that_refuses_is_a_reason_to_skip_and_a_failure_in_ci() -> None:
    """With what it has said."""
    need_namespaces("", {MUST: "1"})
    with pytest.raises(pytest.skip.Exception, match="no network namespaces: Operation not permitted"):
        need_namespaces("Operation not permitted", {})
    with pytest.raises(pytest.fail.Exception, match="no network namespaces: Operation not permitted"):
        need_namespaces("Operation not permitted", {MUST: "1"})
    assert f"export {MUST}=1" in (ROOT / ".ci" / "run").read_text()
