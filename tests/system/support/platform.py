"""The whole platform as processes on loopback, for tests: started by `up`, reached over HTTP, killed by pid."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.command_line import run_command
from tests.forked_module import ForkedModule
from tests.system.support.processes import descendants, is_alive
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[3]
START_S = 60.0
STOP_S = 60.0
PATIENCE_S = 120.0
"""For an answer: on a busy machine a container may take a minute to start."""


@dataclass(kw_only=True)
class Platform:
    """A running platform. `pids` is read anew, since the supervisor starts again what dies."""

    state: Path
    process: subprocess.Popen[bytes] | ForkedModule
    ready_file: Path
    client_file: Path
    python: str = sys.executable
    ledger_url: str = ""
    """Of its ledger in PostgreSQL; "": it is in the state folder."""
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        client = json.loads(self.client_file.read_text())
        self.url, self.key = client["url"], client["api_key"]
        self.http = self.as_holder_of(self.key)

    def as_holder_of(self, key: str) -> httpx.Client:
        """A client with another key."""
        limits = httpx.Limits(max_connections=200)
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE_S, limits=limits)

    @property
    def pids(self) -> dict[str, int]:
        pids: dict[str, int] = json.loads(self.ready_file.read_text())["pids"]
        return pids

    @property
    def urls(self) -> list[str]:
        """Of all gateways, `url` first."""
        urls: list[str] = json.loads(self.ready_file.read_text())["urls"]
        return urls

    def metrics(self) -> list[str]:
        """What Prometheus reads of each gateway, in the order of `urls`."""
        urls: list[str] = json.loads(self.ready_file.read_text())["metrics_urls"]
        return [self.http.get(url, timeout=30.0).text for url in urls]

    def metrics_by_process(self) -> dict[str, str]:
        """What Prometheus reads of each process, by its name."""
        urls: dict[str, str] = json.loads(self.ready_file.read_text())["metrics_by_process"]
        return {name: self.http.get(url, timeout=30.0).text for name, url in urls.items()}

    @property
    def nats_url(self) -> str:
        return str(json.loads(self.ready_file.read_text())["nats_url"])

    @property
    def env(self) -> dict[str, str]:
        """What the SDK and the command line need to find it."""
        return {**os.environ, "PILOTLIGHT_URL": self.url, "PILOTLIGHT_API_KEY": self.key, "NO_COLOR": "1"}

    def cli(self, *args: str, check: bool = True, key: str = "") -> subprocess.CompletedProcess[str]:
        """Run the command line as a person would; with another `key`, as another person."""
        done = run_command(args, env={**self.env, **({"PILOTLIGHT_API_KEY": key} if key else {})})
        assert not check or done.returncode == 0, f"{args} -> {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def deploy(self, path: str | Path) -> str:
        """Deploy an app; what was printed."""
        return self.cli("deploy", str(path)).stdout

    def is_ready(self) -> bool:
        """Whether it takes calls."""
        try:
            return self.http.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def call(
        self, ref: str, timeout: float = PATIENCE_S, method: str | None = None, **arguments: Any
    ) -> httpx.Response:
        """A unary call with JSON arguments."""
        body = {"input": arguments, "method": method}
        return self.http.post(f"/v1/functions/{ref}/calls", json=body, timeout=timeout)

    def answer(self, ref: str, method: str | None = None, **arguments: Any) -> dict[str, Any]:
        """The whole answer of a call that must succeed."""
        answer = self.call(ref, method=method, **arguments)
        assert answer.status_code == 200, answer.text
        whole: dict[str, Any] = answer.json()
        return whole

    def output(self, ref: str, method: str | None = None, **arguments: Any) -> Any:
        """What a call that must succeed returns."""
        return self.answer(ref, method, **arguments)["output"]

    def containers(self, app: str | None = None) -> list[dict[str, Any]]:
        """What `container list` shows, of one app or of all."""
        found: list[dict[str, Any]] = self.http.get("/v1/containers").json()["containers"]
        return [container for container in found if app in (None, container["app"])]

    def container_of(self, app: str, function: str) -> dict[str, Any]:
        """The only container of a function, which has answered a call: its node tells of it a moment later."""

        def look() -> dict[str, Any] | None:
            found = [container for container in self.containers(app) if container["function"] == function]
            return found[0] if len(found) == 1 else None

        return wait_until(look, f"{app}.{function} has one container")

    def blanks(self) -> int:
        """Blanks ready on all nodes."""
        return sum(sum(node["blanks"].values()) for node in self.http.get("/v1/nodes").json()["nodes"])

    def logs(self, app: str, function: str | None = None) -> list[dict[str, Any]]:
        """The lines that an app has logged; a gateway whose bus has just died asks for a little patience."""
        params = {"function": function} if function else {}

        def read() -> httpx.Response | None:
            answer = self.http.get(f"/v1/apps/{app}/logs", params=params)
            return answer if answer.status_code != 503 else None

        lines = wait_until(read, "logs can be read", START_S)
        assert lines.status_code == 200, lines.text
        return [json.loads(line) for line in lines.text.splitlines() if line]

    def signal(self, name: str, number: signal.Signals) -> int:
        """Signal one process by its part; returns the pid it went to."""
        pid = self.pids[name]
        os.kill(pid, number)
        return pid

    def refusal(self, path: Path) -> str:
        """What a deploy is refused with, as soon as the gateway knows its fleet."""

        def refused() -> str:
            done = self.cli("deploy", str(path), check=False)
            return done.stderr if done.returncode else ""

        return wait_until(refused, "the gateway knows its fleet")

    def runs(self, name: str) -> bool:
        """Whether that part does."""
        return is_alive(self.pids.get(name, 0))

    def kill(self, name: str) -> int:
        """kill -9 one process and wait until it is gone."""
        pid = self.signal(name, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), f"{name} (pid {pid}) dies")
        return pid

    def stop(self) -> int:
        """Ctrl-C; returns the exit code."""
        self.http.close()
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(STOP_S)


@contextmanager
def platform(
    folder: Path,
    *options: str,
    env: Mapping[str, str] | None = None,
    python: str = sys.executable,
    executed: bool = False,
) -> Iterator[Platform]:
    """A platform of its own in `folder`, stopped (and if need be killed) at the end of the block.

    Its blanks import nothing ahead unless `env` says so: most functions of tests need nothing, and torch is a second of
    a core for each. Nothing is parked either: most tests wait until what is idle has ended. There is no dashboard.

    Args:
        env: beside the test's own; what begins with PYTHON is for an interpreter that starts.
        python: the interpreter of all of its processes.
        executed: its processes are started as an operator's are, and not forks (`tests.module_forks`): for tests of
            what such a start gives a process, such as what /proc shows of it.
    """
    ready, client, output = folder / "ready.json", folder / "client.json", folder / "up.log"
    ready.unlink(missing_ok=True)  # of a former run in the same folder
    words = [
        "pilotlight_supervisor.up", "--state-dir", str(folder / "state"), "--port", "0",
        "--json-ready", str(ready), "--client-file", str(client), *options,
    ]  # fmt: skip
    usual = {"PILOTLIGHT_PREIMPORT": "none", "PILOTLIGHT_WARM_MEMORY": "0", "PILOTLIGHT_DASHBOARD": "off"}
    whole = {**os.environ, **usual, **(env or {})}
    process: subprocess.Popen[bytes] | ForkedModule
    with output.open("wb") as log:
        if executed or python != sys.executable or any(name.startswith("PYTHON") for name in env or ()):
            process = subprocess.Popen([python, "-m", *words], stdout=log, stderr=log, cwd=ROOT, env=whole)
        else:
            process = ForkedModule(words, env=whole, cwd=ROOT, log=log.fileno())
    try:
        wait_until(
            lambda: (ready.exists() and client.exists()) or process.poll() is not None, "the platform is up", START_S
        )
        assert process.poll() is None, output.read_text()
        running = Platform(state=folder / "state", process=process, ready_file=ready, client_file=client, python=python)
        with running.http:
            yield running
    finally:
        family = descendants(process.pid)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in family:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)


def make_tenant(platform: Platform, name: str, tier: str = "paid") -> str:
    """Make a tenant as an operator does; returns a key of it."""
    platform.http.post("/v1/tenants", json={"name": name, "tier": tier}).raise_for_status()
    made = platform.http.post(f"/v1/tenants/{name}/keys", json={"scopes": ["admin"]}).raise_for_status()
    return str(made.json()["key"])
