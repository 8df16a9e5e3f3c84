"""A platform of two gateways and two agents on one machine, of which each process can be one of another release."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx

from pilotlight_core.bus import bus_users
from pilotlight_supervisor.embedded_bus import choose_port, find_nats_server, user_url, write_config
from pilotlight_supervisor.free_ports import free_port
from tests.command_line import run_command
from tests.hosts.host_network import DIES_WITH_US, END_S
from tests.releases.stored_release import unpack_data
from tests.system.support.platform import ROOT
from tests.system.support.sample_apps import APPS
from tests.system.support.steady_load import SteadyLoad
from tests.waiting import wait_until

NODES, GATEWAYS = ("node-1", "node-2"), ("gateway-1", "gateway-2")
START_S = 200.0
"""A process of Python starts in a second, and on a machine with fifty that want its two cores in more than ninety."""
MODULES = {
    "gateway": "pilotlight_gateway", "duties": "pilotlight_gateway.duties", "controller": "pilotlight_autoscaler",
    "node": "pilotlight_runtime",
}  # fmt: skip
NEWER = "forecast=False, "
"""What functions say that 0.1 does not know."""


def source_of(commit: str, folder: Path) -> Path:
    """The source of a commit of this repository, in a new folder."""
    git = ("git", "-C", str(ROOT))
    if subprocess.run([*git, "cat-file", "-e", f"{commit}^{{commit}}"], check=False, capture_output=True).returncode:
        # A clone that is not whole: whoever runs this has the rest where the clone is from.
        subprocess.run([*git, "fetch", "--quiet", "--depth", "1", "origin", commit], check=False, capture_output=True)
    packed = subprocess.run([*git, "archive", commit], check=False, capture_output=True)
    assert packed.returncode == 0, (
        f"the commit {commit} of tests/releases/before.txt is not in this clone, nor where it is from: fetch the whole "
        f"history (git fetch --unshallow). git says: {packed.stderr.decode()}"
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        unpack_data(archive, folder)
    return folder


class ReleaseFleet:
    """Its processes, by their names: gateway-1, gateway-2, duties, controller, node-1, node-2."""

    def __init__(self, folder: Path, ending: ExitStack) -> None:
        self.folder, self.state, self._ending = folder, folder / "state", ending
        self._bus, self._blobs = self.state / "nats", f"file://{self.state}/blobs"
        self._ports = {name: (free_port(), free_port()) for name in GATEWAYS}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._client = folder / "client.json"
        self.ledger_url = ""
        """Of the processes that are started from now on; "": it is in the state folder."""
        self._port = choose_port(self._bus)
        config = write_config(self._bus, self._port, NODES, of_before=True)
        self._run("nats", [str(find_nats_server()), "-c", str(config)], {})

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{public}" for public, _ in self._ports.values()]

    @property
    def key(self) -> str:
        return str(json.loads(self._client.read_text())["api_key"])

    def start(self, name: str, python: Path | str = sys.executable) -> None:
        """Start a process of the release whose interpreter this is; it is ready afterwards."""
        kind = name.partition("-")[0]
        user = bus_users.agent(name).name if kind == "node" else kind
        words = ["--state-dir", str(self.state), "--region", "local", "--zone", "local-a", "--name", name]
        if kind == "gateway":
            public, internal = self._ports[name]
            words += ["--port", str(public), "--internal-port", str(internal), "--blob-url", self._blobs]
            words += ["--bootstrap-client-file", str(self._client)] if name == GATEWAYS[0] else []
        if kind == "duties":
            words += ["--blob-url", self._blobs]
        if kind == "node":
            words += ["--node", name, "--cpu-slots", "6", "--blanks", "1", "--preimport", "none", "--agents-here", "2"]
            words += ["--sandbox", "process", "--blob-url", self._blobs]
        env = {"PILOTLIGHT_NATS_URL": user_url(self._bus, self._port, user)}
        if kind in ("gateway", "duties") and self.ledger_url:
            env["PILOTLIGHT_LEDGER_URL"] = self.ledger_url
        self._run(name, [str(python), "-m", MODULES[kind], *words], env)
        wait_until(lambda: self._is_up(name) or self._running[name].poll() is not None, f"{name} is up", START_S)
        assert self._running[name].poll() is None, self.log(name)

    def start_all(self, python: Path | str = sys.executable) -> None:
        for name in (*GATEWAYS, "duties", "controller", *NODES):
            self.start(name, python)

    def end(self, name: str) -> None:
        """SIGTERM, as whoever replaces it does."""
        process = self._running.pop(name)
        process.terminate()
        assert process.wait(END_S) == 0, self.log(name)

    def deploy(self) -> None:
        """What the load calls, as every release understands it."""
        (folder := self.folder / "app").mkdir()
        app = folder / "app.py"
        app.write_text((APPS / "crash" / "app.py").read_text().replace(NEWER, ""))
        env = {**os.environ, "PILOTLIGHT_URL": self.urls[0], "PILOTLIGHT_API_KEY": self.key, "NO_COLOR": "1"}
        done = run_command(["deploy", str(app)], env=env)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    def load(self) -> SteadyLoad:
        return SteadyLoad(urls=self.urls, key=self.key)

    def copy_ledger(self) -> str:
        """The URL of a copy of it as it is now."""
        copy = self.folder / "before.sqlite"
        with closing(sqlite3.connect(self.state / "ledger.sqlite")) as one, closing(sqlite3.connect(copy)) as other:
            one.backup(other)
        return f"sqlite:///{copy}"

    def billed_calls(self, ledger_url: str) -> set[str]:
        """The calls in a ledger, of any release."""
        with closing(sqlite3.connect(ledger_url.removeprefix("sqlite:///"))) as ledger:
            views = ledger.execute("SELECT count(*) FROM sqlite_master WHERE name = 'receipt_line'").fetchone()[0]
            query = "SELECT call FROM receipt_line" if views else "SELECT call FROM call_line"
            return {call for (call,) in ledger.execute(query)}

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-20_000:]

    def _is_up(self, name: str) -> bool:
        if name in GATEWAYS:
            return _answers(f"{self.urls[GATEWAYS.index(name)]}/readyz", self.key if self._client.exists() else "")
        if name in NODES:
            found = httpx.get(f"{self.urls[0]}/v1/nodes", headers={"Authorization": f"Bearer {self.key}"}, timeout=10.0)
            return name in {node["node"] for node in found.json().get("nodes", ())}
        return True

    def _run(self, name: str, command: list[str], env: dict[str, str]) -> None:
        whole = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ} | env
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*DIES_WITH_US, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, env=whole
            )
        self._running[name] = process
        self._ending.callback(_stop, process)


def _answers(url: str, key: str) -> bool:
    try:
        return httpx.get(url, headers={"Authorization": f"Bearer {key}"}, timeout=5.0).status_code == 200
    except httpx.TransportError:
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15.0)
    process.kill()
    process.wait()


@contextmanager
def release_fleet(folder: Path) -> Iterator[ReleaseFleet]:
    """A fleet with its bus; all else is started by the test."""
    with ExitStack() as ending:
        yield ReleaseFleet(folder, ending)
    shutil.rmtree(folder / "state", ignore_errors=True)
