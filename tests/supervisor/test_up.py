"""`up` with trivial parts: ready, restart, orderly end; and its refusals as a command."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from pilotlight_core.host.config import parse
from pilotlight_supervisor.free_ports import QUIET_PORTS, can_listen, free_port, release_port
from pilotlight_supervisor.platform_plan import UpSettings
from pilotlight_supervisor.readiness import UpError, http_status
from pilotlight_supervisor.restore_mark import MARK, begin_restore
from pilotlight_supervisor.up import (
    DASHBOARD_ABOVE,
    LONGEST_SOCKET,
    LOOPBACK,
    check_pool_socket,
    choose_dashboard_port,
    claim_metrics_ports,
)
from tests.forked_module import ForkedModule
from tests.supervisor.test_embedded_bus import alive
from tests.waiting import until

STUB = Path(__file__).with_name("stub_up.py")


@contextmanager
def running(tmp_path: Path, gateway: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """`up` over stub processes: a sleeper, and an HTTP server that behaves as `gateway` says."""
    ready = tmp_path / "ready.json"
    command = [sys.executable, str(STUB), str(tmp_path), str(free_port()), str(ready), gateway]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, ready
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def pids(ready: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads(ready.read_text())["pids"]
    return found


async def test_it_tells_when_it_is_ready_and_ends_in_order(tmp_path: Path) -> None:
    """One line and the ready file come when the gateway answers 200; SIGINT ends all parts with exit code 0."""
    with running(tmp_path, "late") as (process, ready):
        assert process.stdout is not None
        line = process.stdout.readline()
        told = json.loads(ready.read_text())
        assert told["url"] in line
        assert await http_status(f"{told['url']}/readyz") == 200
        assert set(told["pids"]) == {"gateway", "sleeper"}

        process.send_signal(signal.SIGINT)

        assert process.wait(60) == 0
        assert not any(alive(pid) for pid in told["pids"].values())


async def test_the_ready_file_follows_a_restart(tmp_path: Path) -> None:
    """A killed part is started again under a new pid, which the file shows."""
    with running(tmp_path, "good") as (_process, ready):
        await until(ready.exists)
        first = pids(ready)["sleeper"]

        os.kill(first, signal.SIGKILL)

        await until(lambda: pids(ready).get("sleeper", first) != first)


async def test_killed_itself_it_leaves_nothing(tmp_path: Path) -> None:
    """`kill -9` of `up`: all its parts end."""
    with running(tmp_path, "good") as (process, ready):
        await until(ready.exists)
        parts = pids(ready)

        process.kill()

        await until(lambda: not any(alive(pid) for pid in parts.values()))


async def test_a_part_that_never_starts_is_told_with_its_log(tmp_path: Path) -> None:
    """It gives up soon, with the end of the part's output, and leaves nothing."""
    with running(tmp_path, "broken") as (process, ready):
        _, errors = process.communicate(timeout=60)

        assert process.returncode == 1
        assert "gateway does not start" in errors
        assert "on purpose" in errors
        assert not ready.exists()


async def test_it_can_be_stopped_while_it_starts(tmp_path: Path) -> None:
    """SIGTERM before it is ready ends it as well."""
    with running(tmp_path, "never") as (process, ready):
        await until((tmp_path / "logs" / "gateway.log").exists)

        process.terminate()

        assert process.wait(60) == 0
        assert not ready.exists()


@dataclass(frozen=True)
class Refused:
    returncode: int
    stderr: str
    """All that it has printed."""


def up(*arguments: str) -> Refused:
    with TemporaryFile() as log:
        process = ForkedModule(
            ("pilotlight_supervisor.up", *arguments), env=os.environ, cwd=Path.cwd(), log=log.fileno()
        )
        code = process.wait(90.0)
        log.seek(0)
        return Refused(code, log.read().decode())


def test_a_second_one_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    """The message has the folder and the pid of the first."""
    with running(tmp_path, "never") as (first, _):
        assert first.stdout is not None
        assert first.stdout.readline() == "locked\n"

        second = up("--state-dir", str(tmp_path), "--port", "0")

        assert second.returncode == 1
        assert f"in use by another 'pilotlight up' (pid {first.pid})" in second.stderr


def test_a_folder_or_a_blob_store_that_cannot_be_is_refused(tmp_path: Path) -> None:
    """By its option, before anything is started."""
    (tmp_path / "file").write_text("")

    for flags in (("--state-dir", str(tmp_path / "file")), ("--state-dir", str(tmp_path / "file" / "below"))):
        done = up("--port", "0", *flags)
        assert done.returncode == 1
        assert done.stderr.startswith(f"error: {flags[1]} cannot hold the state (")
        assert done.stderr.endswith("choose another --state-dir.\n")
    done = up("--state-dir", str(tmp_path / "state"), "--port", "0", "--blob-url", "http://x")
    assert done.returncode == 1
    assert done.stderr.startswith("error: --blob-url: 'http://x' is not a blob store: expected file:///folder or s3://")
    assert not (tmp_path / "state" / "logs").exists()


def test_a_folder_that_was_restored_in_part_is_refused(tmp_path: Path) -> None:
    """By the mark's name, before anything is started."""
    begin_restore(tmp_path / "state", tmp_path / "copy")

    done = up("--state-dir", str(tmp_path / "state"), "--port", "0")

    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path / 'state' / MARK}: the restore of {tmp_path / 'copy'} did not")
    assert not (tmp_path / "state" / "logs").exists()


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    """Before anything is started."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        for flag in ("--port", "--nats-port", "--gateway-metrics-port", "--metrics-port", "--dashboard-port"):
            done = up("--state-dir", str(tmp_path / flag), "--port", "0", flag, port)
            assert done.returncode == 1
            assert f"{flag}." in done.stderr
            assert not (tmp_path / flag / "logs").exists()
    done = up("--state-dir", str(tmp_path), "--port", "0", "--metrics-port", "65534")
    assert "Port 65536 of 127.0.0.1 is none: choose another with --metrics-port." in done.stderr


def test_the_dashboard_is_ten_ports_above_the_api_or_elsewhere() -> None:
    """Where nobody is told otherwise; without a dashboard there is no port."""
    settings = parse(UpSettings, "", [], {})
    api = free_port()
    usual = choose_dashboard_port(settings, api)
    assert usual == api + DASHBOARD_ABOVE or not can_listen("127.0.0.1", api + DASHBOARD_ABOVE)
    assert choose_dashboard_port(settings, api) not in (0, api, usual)
    assert choose_dashboard_port(settings, 65_535) <= 65_535
    assert choose_dashboard_port(parse(UpSettings, "", ["--no-dashboard"], {}), api) == 0
    with pytest.raises(UpError, match="--dashboard-port"):
        choose_dashboard_port(parse(UpSettings, "", ["--dashboard-port", str(usual)], {}), api)


def test_ports_for_metrics_follow_the_first_one() -> None:
    """Which is the duties', also by the variable that has always been theirs; without it each has any."""
    for first in range(QUIET_PORTS.start, QUIET_PORTS.stop, 5):
        settings = parse(UpSettings, "", ["--extra-agents", "1"], {"PILOTLIGHT_METRICS_PORT": str(first)})
        with suppress(UpError):
            ports = claim_metrics_ports(settings)
            break
    for port in ports.values():
        release_port(LOOPBACK, port)
    assert list(ports.items()) == [
        (name, settings.metrics_port + number)
        for number, name in enumerate(("duties", "controller", "agent", "agent-2", "dashboard"))
    ]

    any_port = claim_metrics_ports(parse(UpSettings, "", [], {}))
    assert any_port.keys() == {"duties", "controller", "agent", "dashboard"}
    assert len(set(any_port.values())) == 4


def test_a_bad_flag_is_refused(tmp_path: Path) -> None:
    """By name."""
    done = up("--state-dir", str(tmp_path), "--blanks", "many")

    assert done.returncode == 2
    assert done.stderr == "error: --blanks: expected int, got 'many'.\n"


@pytest.mark.parametrize(
    ("base", "why"),
    [
        ("vllm", "--base vllm: expected NAME=PATH, the folder of a virtual environment."),
        ("vllm=/nowhere", "--base vllm: there is no interpreter /nowhere/bin/python."),
    ],
)
def test_an_environment_that_cannot_run_functions_is_refused(tmp_path: Path, base: str, why: str) -> None:
    """Before anything is started; agents would be started again and again."""
    done = up("--state-dir", str(tmp_path / "state"), "--port", "0", "--base", base)

    assert (done.returncode, done.stderr) == (1, f"error: {why}\n")
    assert not (tmp_path / "state" / "logs").exists()


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("2xH999:mig", "fake GPUs: H999 is not in the catalogue, which has "),
        ("1xT4:mig", "a T4 has no MIG mode"),
        ("two H100s", """'two H100s' is not understood: expected such as "2xH100:mig,1xT4\""""),
    ],
)
def test_gpus_in_software_that_are_not_understood_are_refused(tmp_path: Path, spec: str, why: str) -> None:
    """Before anything is started, in the runtime's words."""
    done = up("--state-dir", str(tmp_path / "state"), "--port", "0", "--fake-gpus", spec)

    assert done.returncode == 1
    assert why in done.stderr
    assert done.stderr.endswith(" Correct --fake-gpus.\n")
    assert "Traceback" not in done.stderr
    assert "request" not in done.stderr  # nobody sent one
    assert not (tmp_path / "state" / "logs").exists()


def test_a_folder_whose_socket_would_have_too_long_a_name_is_refused(tmp_path: Path) -> None:
    """If pools may start agents, who are asked for there."""
    deep = tmp_path / ("d" * LONGEST_SOCKET)
    check_pool_socket(UpSettings(state_dir=deep))
    with pytest.raises(UpError, match="--state-dir"):
        check_pool_socket(UpSettings(state_dir=deep, pool_agents=1))
