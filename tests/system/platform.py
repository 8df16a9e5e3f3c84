"""The whole platform as processes on loopback, for tests: started by `up`, reached over HTTP, killed by pid."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
START_S = 60.0
STOP_S = 40.0


def wait_until(condition: Callable[[], T], what: str, within_s: float = 20.0) -> T:
    """Ask until the answer is true; AssertionError says what never came."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {within_s:.0f} s: {what}")


@dataclass(kw_only=True)
class Platform:
    """A running platform. `pids` is read anew, since the supervisor starts again what dies."""

    state: Path
    process: subprocess.Popen[bytes]
    ready_file: Path
    client_file: Path
    http: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        client = json.loads(self.client_file.read_text())
        self.url, self.key = client["url"], client["api_key"]
        self.http = httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.key}"}, timeout=60.0)

    @property
    def pids(self) -> dict[str, int]:
        pids: dict[str, int] = json.loads(self.ready_file.read_text())["pids"]
        return pids

    @property
    def env(self) -> dict[str, str]:
        """What the SDK and the command line need to find it."""
        return {**os.environ, "PILOTLIGHT_URL": self.url, "PILOTLIGHT_API_KEY": self.key, "NO_COLOR": "1"}

    def cli(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the command line as a person would."""
        done = subprocess.run(
            [sys.executable, "-m", "pilotlight.cli.main", *args],
            env=self.env, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{args} -> {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def deploy(self, path: str | Path) -> None:
        self.cli("deploy", str(path))

    def call(self, ref: str, timeout: float = 60.0, **arguments: Any) -> httpx.Response:
        """A unary call with JSON arguments."""
        return self.http.post(f"/v1/functions/{ref}/calls", json={"input": arguments}, timeout=timeout)

    def output(self, ref: str, **arguments: Any) -> Any:
        """The answer of a call that must succeed."""
        answer = self.call(ref, **arguments)
        assert answer.status_code == 200, answer.text
        return answer.json()["output"]

    def containers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.http.get("/v1/containers").json()["containers"]
        return found

    def blanks(self) -> int:
        """Blanks ready on all nodes."""
        return sum(sum(node["blanks"].values()) for node in self.http.get("/v1/nodes").json()["nodes"])

    def signal(self, name: str, number: signal.Signals) -> int:
        """Signal one process by its part; returns the pid it went to."""
        pid = self.pids[name]
        os.kill(pid, number)
        return pid

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


def is_alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def descendants(pid: int) -> set[int]:
    """All processes below `pid`."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found: set[int] = set()
    todo = [pid]
    while todo:
        for child in children.get(todo.pop(), []):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found


@contextmanager
def platform(folder: Path, *options: str) -> Iterator[Platform]:
    """A platform of its own in `folder`, stopped (and if need be killed) at the end of the block."""
    ready, client, output = folder / "ready.json", folder / "client.json", folder / "up.log"
    command = [
        sys.executable, "-m", "pilotlight_core.host.up", "--state-dir", str(folder / "state"), "--port", "0",
        "--json-ready", str(ready), "--client-file", str(client), *options,
    ]  # fmt: skip
    with output.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT)
    try:
        wait_until(
            lambda: (ready.exists() and client.exists()) or process.poll() is not None, "the platform is up", START_S
        )
        assert process.poll() is None, output.read_text()
        running = Platform(state=folder / "state", process=process, ready_file=ready, client_file=client)
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
