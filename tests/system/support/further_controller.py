"""A second controller beside that of a platform, started from outside as an operator would who runs two."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from pilotlight_core.bus import bus_users
from pilotlight_supervisor.embedded_bus import user_url
from pilotlight_supervisor.free_ports import free_port
from tests.system.support.platform import ROOT, Platform
from tests.waiting import wait_until

LEADS = "pilotlight_controller_leads 1.0"


@dataclass(kw_only=True)
class FurtherController:
    process: subprocess.Popen[bytes]
    metrics_url: str

    def leads(self) -> bool:
        """Whether it says so."""
        return bool(says_that_it_leads(self.metrics_url))

    def kill(self) -> None:
        """kill -9; nobody starts it again."""
        self.process.kill()
        self.process.wait()


def says_that_it_leads(metrics_url: str) -> bool | None:
    """What a controller's metrics say; None: it cannot be asked."""
    try:
        return LEADS in httpx.get(metrics_url, timeout=30.0).text
    except httpx.TransportError:
        return None


@contextmanager
def further_controller(platform: Platform, *options: str) -> Iterator[FurtherController]:
    """One that waits for the lease, or advises if its options say so, until the block ends."""
    port, folder = free_port(), platform.state / "nats"
    command = [
        sys.executable, "-m", "pilotlight_autoscaler", "--state-dir", str(platform.state), "--region", "local",
        "--zone", "local-a", "--name", "controller-2", "--metrics-port", str(port), *options,
    ]  # fmt: skip
    bus = user_url(folder, urlsplit(platform.nats_url).port or 0, bus_users.CONTROLLER)
    with (platform.state / "logs" / "controller-2.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=ROOT, env={**os.environ, "PILOTLIGHT_NATS_URL": bus}
        )
    further = FurtherController(process=process, metrics_url=f"http://127.0.0.1:{port}/metrics")
    try:
        wait_until(lambda: says_that_it_leads(further.metrics_url) is False, "the other controller is there")
        yield further
    finally:
        further.kill()
