"""How uv is told of one index, and of nothing else."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pilotlight_runtime.builder.build_frames import BuildJob
from pilotlight_runtime.builder.uv_commands import install_command, is_unanswered, lock_command, uv_environment
from pilotlight_runtime.node.package_builds import find_uv

JOB = BuildJob(uv="/uv", python="/base/bin/python", index="https://index/simple/", network="/run/network")
FOLDER = Path("/tmp/build")


def test_both_commands_are_closed() -> None:
    """No configuration, no other index, no keyring, nothing that has to be built."""
    for command in (lock_command(JOB, FOLDER), install_command(JOB, FOLDER, FOLDER / "packages")):
        text = " ".join(command)
        assert "--no-config --no-sources --only-binary :all: --keyring-provider disabled" in text
        assert "index/simple" not in text  # with its password: command lines can be read
        assert "--index-strategy first-index" in text
        assert "--extra-index-url" not in text
        assert "--python /base/bin/python" in text
    assert "--require-hashes" in install_command(JOB, FOLDER, FOLDER)
    assert "--no-deps" in install_command(JOB, FOLDER, FOLDER)


def test_a_lock_is_held_to_pins_where_there_are_some() -> None:
    """As when it is tried over another base environment."""
    assert "/tmp/build/pins.txt" not in lock_command(JOB, FOLDER)
    assert "/tmp/build/pins.txt" in lock_command(msgspec.structs.replace(JOB, pins="a==1\n"), FOLDER)


def test_the_environment_is_all_that_there_is() -> None:
    """Requests go to the proxy; the authorities of the index are those that were named, if any."""
    env = uv_environment(JOB, FOLDER, "http://127.0.0.1:1")

    assert env["HTTPS_PROXY"] == env["http_proxy"] == "http://127.0.0.1:1"
    assert env["UV_DEFAULT_INDEX"] == "https://index/simple/"
    assert "NO_PROXY" not in env
    assert "SSL_CERT_FILE" not in env
    named = uv_environment(msgspec.structs.replace(JOB, certificates="/run/ca.pem"), FOLDER, "")
    assert named["SSL_CERT_FILE"] == "/run/ca.pem"


@pytest.mark.parametrize(
    ("status", "words", "expected"),
    [
        (2, "error: Failed to fetch: http://i/\n  cause: error sending request for url (http://i/)", True),
        (2, "error: Failed to fetch: http://i/\n  cause: HTTP status server error (503 Service Unavailable)", True),
        (2, "error: Failed to fetch: https://i/\n  cause: tunnel error: unsuccessful", True),
        (2, "error: Failed to fetch: http://i/\n  cause: HTTP status client error (404 Not Found)", False),
        (2, "error: Failed to parse: `tiny=1`", False),
        (1, "error: No solution found: error sending request", False),
    ],
)
def test_an_index_that_does_not_answer_is_told_from_what_it_does_not_have(
    status: int, words: str, expected: bool
) -> None:
    """By uv's status and words."""
    assert is_unanswered(status, words) is expected


def test_uv_says_so_of_an_index_that_is_not_there(tmp_path: Path) -> None:
    """This release of it, of an address where nobody listens."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        (tmp_path / "r.in").write_text("tiny\n")
        done = subprocess.run(
            [find_uv(), "pip", "compile", "r.in", "--no-config", "--quiet", "--python", sys.executable],
            env={
                "HOME": str(tmp_path), "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_HTTP_RETRIES": "0",
                "UV_DEFAULT_INDEX": f"http://127.0.0.1:{port}/simple", "NO_PROXY": "127.0.0.1",
            },
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert is_unanswered(done.returncode, done.stderr), done.stderr
