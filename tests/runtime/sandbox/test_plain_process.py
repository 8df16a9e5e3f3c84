"""The sandbox that is none, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_runtime.sandbox.plain_process import ProcessLauncher
from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted
from pilotlight_runtime.sandbox.sandbox_port import SandboxExit
from pilotlight_runtime.sandbox.sandbox_spec import Mount, SandboxSpec
from tests.runtime.sandbox.conftest import MIB, Starter, all_end, read_output, read_value


@pytest.fixture
def plain() -> ProcessLauncher:
    return ProcessLauncher()


def test_it_promises_nothing_but_to_die_with_its_agent(plain: ProcessLauncher) -> None:
    """So the node is for one tenant."""
    guarantees = plain.guarantees()

    assert not guarantees.many_tenants
    assert not guarantees.sandbox_limits
    assert not guarantees.own_host_uid
    assert not guarantees.kills_everything
    assert guarantees.dies_with_agent
    assert "--sandbox process" in guarantees.notes[0]


async def test_it_runs_in_its_code_folder_with_a_clean_environment(
    start: Starter, plain: ProcessLauncher, code_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the agent's environment is in it."""
    monkeypatch.setenv("PILOTLIGHT_TEST_SECRET", "sesame")
    sandbox = await start("tell([os.getcwd(), os.environ['PL_APP'], 'sesame' in os.environ.values()])", using=plain)

    assert await read_value(sandbox) == [str(code_dir), str(code_dir), False]


async def test_it_goes_before_the_platform_when_memory_is_short(start: Starter, plain: ProcessLauncher) -> None:
    """As behind walls."""
    sandbox = await start("tell(open('/proc/self/oom_score_adj').read())", using=plain)

    assert await read_value(sandbox) == "1000\n"


async def test_rlimits_hold(start: Starter, plain: ProcessLauncher) -> None:
    """Core dumps, open files and the size of a file are bounded; it leads a session."""
    sandbox = await start(
        """import resource
tell([resource.getrlimit(which)[1] for which in (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)])
tell(os.getsid(0) == os.getpid())""",
        using=plain,
    )

    assert await read_value(sandbox) == [0, 128, 64 * MIB]
    assert await read_value(sandbox) is True


async def test_kill_reaches_its_group(start: Starter, plain: ProcessLauncher) -> None:
    """Children too."""
    sandbox = await start("os.fork(); tell(1); time.sleep(1000)", using=plain)
    assert [await read_value(sandbox), await read_value(sandbox)] == [1, 1]
    assert len(sandbox.pids()) == 2
    ended = all_end(sandbox.pids())

    sandbox.kill()

    assert ended()


async def test_when_the_first_process_ends_its_group_ends(start: Starter, plain: ProcessLauncher) -> None:
    """Its own exit is the sandbox's."""
    sandbox = await start("if os.fork() == 0: tell(1); time.sleep(1000)\nagent.recv(1)", using=plain)
    await read_value(sandbox)
    ended = all_end(sandbox.pids())

    sandbox.socket.send(b"!")

    assert await sandbox.wait() == SandboxExit(code=0, signal=None, reason="exited")
    assert ended()


async def test_a_signal_is_reported(start: Starter, plain: ProcessLauncher) -> None:
    """As its reason, with its number."""
    sandbox = await start("os.abort()", using=plain)

    assert await sandbox.wait() == SandboxExit(code=None, signal=6, reason="signal")
    assert sandbox.memory_peak_bytes() == 0


async def test_its_processors_time_is_that_of_all_its_processes(start: Starter, plain: ProcessLauncher) -> None:
    """While it runs; afterwards nobody knows."""
    sandbox = await start("while time.process_time() < 0.2: pass\ntell(1); agent.recv(1)", using=plain)
    await read_value(sandbox)
    assert sandbox.cpu_times().used_ms >= 190

    sandbox.socket.send(b"!")
    await sandbox.wait()

    assert sandbox.cpu_times().used_ms == 0


async def test_what_it_cannot_show_is_refused(plain: ProcessLauncher, spec: SandboxSpec, start: Starter) -> None:
    """It has no mounts of its own."""
    elsewhere = Mount(source=Path("/usr"), target=Path("/opt/usr"))

    with pytest.raises(SandboxNotStarted, match="cannot show /usr as /opt/usr"):
        await start("pass", using=plain, read_only=(elsewhere,))


async def test_an_interpreter_that_is_not_there(start: Starter, plain: ProcessLauncher) -> None:
    """Standard error names it."""
    sandbox = await start("pass", using=plain, python=Path("/nowhere/python"))

    assert (await sandbox.wait()).code == 127
    assert "nowhere" in read_output(sandbox.stderr_fd)
