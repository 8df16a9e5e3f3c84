"""What a container may use, and the base environment that it has, in real sandboxes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.model.messages.agent_questions import SecretsAnswer
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.versions.manifest_codec import FEATURES, REQUIREMENTS
from pilotlight_runtime.containers.blanks.base_environment import other_environments
from tests.builders.base_venv import base_venv
from tests.builders.nodes import CEILINGS
from tests.runtime.harness import harness

FILL = """
import errno, os
def f():
    told = {}
    for path in ("/dev/shm/x", "/tmp/x"):
        written = 0
        with open(path, "wb", buffering=0) as file:
            try:
                while True:
                    written += file.write(bytes(1 << 20))
            except OSError as error:
                told[path] = [written >> 20, errno.errorcode[error.errno]]
        os.remove(path)
    return told
"""


async def test_memory_has_a_limit(server_url: str, tmp_path: Path) -> None:
    """In a real sandbox, a function that allocates without end is stopped, and the reason names the limit."""
    source = "def f():\n    hold = []\n    while True:\n        hold.append(bytearray(16 * 2**20))\n"
    async with harness(server_url, tmp_path, sandbox="bubblewrap", blanks=1) as world:
        container = await world.bind(await world.deploy(source, memory=256 * 2**20))

        ended = await world.run(container).ended()

        assert ended.outcome is Outcome.DIED
        assert ended.reason == "memory limit of 256 MiB reached (memory= raises it)"


async def test_processes_have_a_limit(server_url: str, tmp_path: Path) -> None:
    """A function that forks without end gets an error; the node and the next call do not notice."""
    source = """
    import os, time
    def f(forks):
        started = 0
        try:
            for _ in range(forks):
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
                started += 1
        except OSError as error:
            return [started, type(error).__name__]
        return [started, ""]
    """
    async with harness(server_url, tmp_path, sandbox="bubblewrap", blanks=1) as world:
        container = await world.bind(await world.deploy(source))

        started, error = await world.run(container, forks=10_000).output()

        assert error == "BlockingIOError"
        assert started < 520
        assert (await world.run(container, forks=0).ended()).outcome is Outcome.OK


async def test_file_systems_in_memory_have_the_size_that_is_asked_for(server_url: str, tmp_path: Path) -> None:
    """Smaller or larger than a blank's, which is left to others; writing beyond it is an error, not a kill."""
    async with harness(server_url, tmp_path, sandbox="bubblewrap", blanks=1) as world:
        await world.report(lambda report: report.blanks.get("default") == 1)
        plain = await world.bind(await world.deploy(FILL), "cpu-0")
        sized = await world.bind(await world.deploy(FILL, shm=300 << 20, scratch=8 << 20), "cpu-1")

        assert await world.run(plain).output() == {"/dev/shm/x": [256, "ENOSPC"], "/tmp/x": [256, "ENOSPC"]}
        assert await world.run(sized).output() == {"/dev/shm/x": [300, "ENOSPC"], "/tmp/x": [8, "ENOSPC"]}
        report = await world.report(lambda report: [one.calls for one in report.containers] == [1, 1])
        steps = {container.id: container.timeline for container in report.containers}
        assert "blank" in steps[plain]
        assert "sandbox" in steps[sized]


async def test_what_is_in_these_file_systems_counts_as_memory(server_url: str, tmp_path: Path) -> None:
    """A container that fills them up, and takes memory besides, is ended at its `memory=`."""
    source = """
    def f():
        with open("/dev/shm/x", "wb") as file:
            for _ in range(200):
                file.write(bytes(1 << 20))
        return len(bytearray(b"x") * (120 << 20))
    """
    async with harness(server_url, tmp_path, sandbox="bubblewrap") as world:
        container = await world.bind(await world.deploy(source, memory=256 << 20, shm=220 << 20))

        ended = await world.run(container).ended()

        assert ended.outcome is Outcome.DIED
        assert ended.reason == "memory limit of 256 MiB reached (memory= raises it)"


@pytest.mark.parametrize(("pids", "least"), [(32, 20), (700, 600)])
async def test_processes_have_the_limit_that_is_asked_for(
    server_url: str, tmp_path: Path, pids: int, least: int
) -> None:
    """Lower or higher than a blank's, from a blank: threads count too, and the one too many is an error."""
    source = """
    import errno, os, time
    def f():
        started = 0
        try:
            while True:
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
                started += 1
        except OSError as error:
            return [started, errno.errorcode[error.errno]]
    """
    async with harness(server_url, tmp_path, sandbox="bubblewrap", blanks=1) as world:
        await world.report(lambda report: report.blanks.get("default") == 1)
        container = await world.bind(await world.deploy(source, pids=pids))

        started, error = await world.run(container).output()

        assert error == "EAGAIN"
        assert least < started < pids
        (there,) = (await world.report(lambda report: any(one.calls for one in report.containers))).containers
        assert "blank" in there.timeline


async def test_a_function_runs_in_the_base_environment_of_its_manifest(server_url: str, tmp_path: Path) -> None:
    """In a real sandbox, from a blank of that one; the other's packages are not there."""
    venv = base_venv(tmp_path / "venv", flavour="NAME = 'vanilla'")
    (other,) = other_environments([f"sweet={venv}"], "flavour", walled=True)
    source = """
    import importlib.util, sys
    def f():
        found = importlib.util.find_spec("flavour")
        return [sys.modules["flavour"].NAME if found else "", importlib.util.find_spec("nats") is not None]
    """
    async with harness(server_url, tmp_path, sandbox="bubblewrap", blanks=1, bases=(other,)) as world:
        report = await world.report(lambda report: report.blanks == {"default": 1, "sweet": 1})
        assert report.bases == ("default", "sweet")
        assert report.features == tuple(sorted(FEATURES - {REQUIREMENTS}))  # it has no index
        assert report.ceilings == CEILINGS
        plain = await world.bind(await world.deploy(source), "cpu-0")
        sweet = await world.bind(await world.deploy(source, base="sweet"), "cpu-1")

        assert await world.run(plain).output() == ["", True]
        assert await world.run(sweet).output() == ["vanilla", False]

        unknown = await world.deploy(source, base="sour")
        await world.drain(plain)
        gone = await world.bind(unknown, state=ContainerState.GONE)
        assert world.credits[gone][-1].reason == "this node has no base environment 'sour'; it has default, sweet"


async def test_a_secret_is_a_file_of_its_container_alone(server_url: str, tmp_path: Path) -> None:
    """In a folder in memory, for its reader alone; in no environment that the host sees."""
    source = """
    import os, subprocess
    def f():
        path = "/run/secrets/key.pem"
        mounts = [line.split() for line in open("/proc/mounts")]
        kind = [mount[2] for mount in mounts if mount[1] == "/run/secrets"]
        return [open(path).read(), oct(os.stat(path).st_mode), oct(os.stat("/run/secrets").st_mode), kind, os.getpid()]
    """
    async with harness(server_url, tmp_path, sandbox="bubblewrap", blanks=1) as world:
        await world.give_secrets(SecretsAnswer(revision="r1"), key="line one\nline two\n")
        uses = {"/run/secrets/key.pem": "key", "KEY": "key"}
        container = await world.bind(await world.deploy(source, secrets=uses))
        other = await world.bind(
            await world.deploy("import os\ndef f():\n    return os.listdir('/run/secrets')"), "cpu-1"
        )

        value, mode, folder, kind, _ = await world.run(container).output()

        assert (value, mode, folder, kind) == ("line one\nline two\n", "0o100400", "0o40700", ["tmpfs"])
        assert await world.run(other).output() == []
