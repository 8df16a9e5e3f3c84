"""The probe, run where nothing is forbidden: it finds what a sandbox would have to refuse."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pilotlight_runtime.sandbox.sandbox_probe import attempt, fill, write_into

MIB = 1 << 20
PROBE = Path(__file__).parents[3] / "runtime" / "pilotlight_runtime" / "sandbox" / "sandbox_probe.py"


def refuse() -> None:
    raise PermissionError(errno.EACCES, "no")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program reports from a plain process; it ends when its socket is closed."""
    app = tmp_path_factory.mktemp("app")
    ours, theirs = socket.socketpair()
    with ours, socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        command = [sys.executable, "-I", "-S", "-c", PROBE.read_text(), port, str(2 * MIB), "3"]
        env = {"PL_FD": str(theirs.fileno()), "PL_APP": str(app), "SECRET": "sesame"}
        with subprocess.Popen(command, env=env, pass_fds=(theirs.fileno(),)) as process:
            theirs.close()
            ours.settimeout(60)
            with ours.makefile("rb") as lines:
                report: dict[str, Any] = json.loads(lines.readline())
            ours.shutdown(socket.SHUT_RDWR)
            assert process.wait(60) == 0
    assert list(app.iterdir()) == []
    return report


def test_what_is_refused_has_its_errors_name() -> None:
    """And what succeeds has none."""
    assert attempt(refuse) == "EACCES"
    assert attempt(lambda: None) == ""


def test_a_write_leaves_nothing_behind(tmp_path: Path) -> None:
    """Also where it works; where it does not, that is an error."""
    write_into(str(tmp_path))
    assert list(tmp_path.iterdir()) == []

    with pytest.raises(FileNotFoundError):
        write_into(str(tmp_path / "nowhere"))


def test_a_disk_is_filled_up_to_the_limit_and_emptied_again(tmp_path: Path) -> None:
    """In whole MiB; a disk that is full earlier ends it."""
    assert fill(tmp_path / "file", 3 * MIB) == 3 * MIB
    assert list(tmp_path.iterdir()) == []


def test_a_host_within_reach_is_found(found: dict[str, Any]) -> None:
    """The listener's port, as every interface of the machine."""
    assert found["connect"] == ""
    assert "lo" in found["interfaces"]


def test_places_that_can_be_written_are_found(found: dict[str, Any]) -> None:
    """The code folder among them; /tmp up to the limit that was given."""
    assert found["writes"][os.fspath(next(place for place in found["writes"] if "app" in place))] == ""
    assert found["tmp_bytes"] == 2 * MIB


def test_processes_and_the_environment_are_found(found: dict[str, Any]) -> None:
    """All of the host's; and as many children as it was to try."""
    assert {1, os.getpid()} <= set(found["processes"])
    assert "SECRET" in found["environment"]
    assert found["children"] == 3
    assert found["status"]["NoNewPrivs"] == "0"
