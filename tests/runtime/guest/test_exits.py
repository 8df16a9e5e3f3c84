"""How a guest ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.exits import DEVICE_DEAD, IN_ORDER, MALFORMED, flushed_before_exit
from pilotlight_runtime.guest.frames import Loaded, encode

HEAD = """
from pilotlight_runtime.guest.agent_channel import AgentGone
from pilotlight_runtime.guest.exits import exit_now, with_agent
from pilotlight_runtime.guest.frames import MalformedFrame
import threading
threading.Thread(target=threading.Event().wait).start()  # the tenant's, which never ends
print("printed before", end="")
"""


def ended(program: str) -> subprocess.CompletedProcess[str]:
    """How a process ends that runs `program` while a thread of the tenant's goes on."""
    return subprocess.run(
        [sys.executable, "-c", HEAD + program], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_process_ends_at_once_with_its_output_flushed_and_a_line_that_says_why() -> None:
    """Threads of the tenant's code may be anywhere."""
    end = ended(f"exit_now({DEVICE_DEAD}, 'the device is dead')")

    assert (end.returncode, end.stdout, end.stderr) == (
        DEVICE_DEAD,
        "printed before",
        "pilotlight: the device is dead\n",
    )


@pytest.mark.parametrize(
    ("error", "code", "why"),
    [
        ("AgentGone('closed')", IN_ORDER, ""),
        ("MalformedFrame('7 bytes')", MALFORMED, "cannot be understood, so this container ends: 7 bytes"),
        ("KeyError('ours')", MALFORMED, "a mistake of the platform ends this container"),
    ],
)
def test_a_guest_ends_with_its_agent_and_by_our_mistakes(error: str, code: int, why: str) -> None:
    """A guest that hangs helps nobody."""
    end = ended(f"with with_agent(): raise {error}")

    assert end.returncode == code
    assert why in end.stderr
    assert end.stdout == "printed before"


def test_a_block_that_ends_well_goes_on() -> None:
    """The guard costs nothing else."""
    assert ended("with with_agent(): pass\nexit_now(5)").returncode == 5


def test_what_is_kept_goes_when_serving_ends_and_the_processes_ends_are_pythons_own_again() -> None:
    """A tenant's code sees functions of the same names meanwhile."""
    ours, theirs = socket.socketpair()
    own = os._exit, os.abort
    with ours, theirs:
        channel = Channel(ours)
        with flushed_before_exit(channel):
            assert (os._exit.__name__, os.abort.__name__) == ("_exit", "abort")
            assert os._exit is not own[0]
            channel.keep(Loaded())

        assert (os._exit, os.abort) == own
        assert theirs.recv(100) == encode(Loaded())
