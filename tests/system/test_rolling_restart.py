"""Every part of a platform is restarted in turn under load, and no request fails."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx
import pytest

from tests.system.support.bus_replicas import are_caught_up
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.processes import is_alive
from tests.system.support.sample_apps import APPS
from tests.system.support.steady_load import SteadyLoad
from tests.waiting import wait_until

ORDER = ("duties", "agent", "agent-2", "controller", "gateway", "gateway-2")
"""As docs/upgrading.md has it."""
ONE_OF_EACH = ("duties", "agent", "controller", "gateway")
"""In CI: each kind of process, while a second agent and a second gateway are called."""
NOTICE = {"PILOTLIGHT_NOTICE_SECONDS": "3"}
"""The load balancer looks four times a second, but on a busy machine a look may come a second late."""
NODES = 2
SERVERS = ("nats", "nats-2", "nats-3")
OPTIONS = ("--extra-gateways", "1", "--extra-agents", "1", "--cpu-slots", "6", "--blanks", "1")


def all_are_there(running: Platform) -> bool:
    """Whether gateways take calls, and nodes are heard by each of them."""
    with httpx.Client(headers=running.http.headers, timeout=10.0) as http:
        try:
            ready = all(http.get(f"{url}/readyz").status_code == 200 for url in running.urls)
            return ready and all(len(http.get(f"{url}/v1/nodes").json()["nodes"]) == NODES for url in running.urls)
        except httpx.TransportError:
            return False


def restart(running: Platform, part: str, load: SteadyLoad, how: signal.Signals = signal.SIGTERM) -> None:
    """Its supervisor starts again what has ended."""
    before = running.signal(part, how)
    wait_until(lambda: not is_alive(before), f"{part} ends", 60.0)
    load.wait_for_more()
    wait_until(lambda: running.pids.get(part, before) != before, f"{part} is started")
    wait_until(lambda: all_are_there(running), "all are there again", 60.0)
    wait_until(lambda: are_caught_up(running.nats_url), "the servers of the bus have what they should", 60.0)


@pytest.mark.parametrize(
    ("parts", "options", "how"),
    [
        pytest.param(ONE_OF_EACH, (), signal.SIGTERM, id="a process of each kind"),
        pytest.param(ORDER, (), signal.SIGTERM, id="processes", marks=pytest.mark.variant),
        pytest.param(SERVERS, ("--nats-servers", "3"), signal.SIGUSR2, id="servers of the bus", marks=pytest.mark.long),
    ],
)
def test_every_part_is_restarted_and_no_request_fails(
    tmp_path: Path, parts: tuple[str, ...], options: tuple[str, ...], how: signal.Signals
) -> None:
    """Each ends in order, and is started again once calls have gone on without it."""
    with run_platform(tmp_path, *OPTIONS, *options, env=NOTICE) as running:
        running.deploy(APPS / "crash" / "app.py")
        running.output("crash.once", name="first", seconds=0.0)
        with SteadyLoad(urls=running.urls, key=running.key) as load:
            load.wait_for_more()
            for part in parts:
                restart(running, part, load, how)
            load.wait_for_more()
        load.check()
