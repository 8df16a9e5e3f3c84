"""How uv is told of one index, and of nothing else."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pilotlight_runtime.builder.build_frames import BuildJob
from pilotlight_runtime.builder.uv_commands import install_command, lock_command, uv_environment

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
