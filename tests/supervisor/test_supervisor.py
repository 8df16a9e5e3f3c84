"""The supervisor: order, restarts, logs, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pilotlight_supervisor.supervisor import ManagedProcess, Supervisor, backoff, trim_log
from tests.supervisor.test_embedded_bus import alive
from tests.waiting import until

SLEEP = ("/bin/sleep", "1000")


@asynccontextmanager
async def supervised(tmp_path: Path, *parts: ManagedProcess) -> AsyncIterator[Supervisor]:
    supervisor = Supervisor(parts, tmp_path / "logs")
    try:
        await supervisor.start()
        yield supervisor
    finally:
        await supervisor.stop()


def part(name: str, *command: str, rank: int = 0, ready: Callable[[], Awaitable[None]] | None = None) -> ManagedProcess:
    return ManagedProcess(name=name, command=command or SLEEP, rank=rank, stop_within_s=0.5, ready=ready)


def shell(name: str, script: str, rank: int = 0) -> ManagedProcess:
    return part(name, "/bin/sh", "-c", script, rank=rank)


def test_the_first_restart_is_immediate_and_later_ones_wait_longer() -> None:
    """None, 0.1 s, doubling, at most 5 s."""
    assert [backoff(n) for n in range(1, 9)] == [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    assert backoff(100) == 5.0


async def test_parts_start_in_order_of_rank_when_the_ones_before_are_ready(tmp_path: Path) -> None:
    """Rank 1 is not started before rank 0 is ready."""
    seen: list[set[str]] = []
    supervisor: Supervisor

    async def ready() -> None:
        seen.append(set(supervisor.pids))

    parts = (part("last", rank=2), part("first", rank=0, ready=ready), part("middle", rank=1, ready=ready))
    supervisor = Supervisor(parts, tmp_path)
    await supervisor.start()
    everything = supervisor.pids
    await supervisor.stop()

    assert seen == [{"first"}, {"first", "middle"}]
    assert set(everything) == {"first", "middle", "last"}
    assert not any(alive(pid) for pid in everything.values())


async def test_parts_end_in_the_reverse_order(tmp_path: Path) -> None:
    """Each prints at SIGTERM; the later ranks print first."""
    said = tmp_path / "said"
    script = f"trap 'echo $0 >> {said}; exit' TERM; touch {tmp_path}/$0; while :; do sleep 0.01; done"
    parts = [
        ManagedProcess(name=n, rank=r, command=("/bin/sh", "-c", script, n)) for r, n in enumerate(("a", "b", "c"))
    ]
    async with supervised(tmp_path, *parts):
        await until(lambda: all((tmp_path / n).exists() for n in "abc"))

    assert said.read_text().split() == ["c", "b", "a"]


async def test_what_dies_is_started_again(tmp_path: Path) -> None:
    """`kill -9` leads to a new pid, which is reported."""
    async with supervised(tmp_path, part("x")) as supervisor:
        first = supervisor.pids["x"]
        os.kill(first, signal.SIGKILL)

        await until(lambda: supervisor.pids.get("x", first) != first)

        assert supervisor.statistics()["x"].deaths == 1
        assert supervisor.statistics()["x"].last_code == -signal.SIGKILL


async def test_a_dead_process_is_cleaned_up_before_the_next_one_starts(tmp_path: Path) -> None:
    """With the id of its launch; a clean-up that fails does not delay the next start for good."""
    cleaned_up: list[tuple[str, set[str]]] = []
    supervisor: Supervisor

    async def clean_up(launch: str) -> None:
        cleaned_up.append((launch, set(supervisor.pids)))
        if len(cleaned_up) > 1:
            raise OSError("the bus is away")

    said = tmp_path / "said"
    command = ("/bin/sh", "-c", f"echo $PILOTLIGHT_LAUNCH >> {said}; test $(wc -l < {said}) -ge 3 && sleep 1000")
    supervisor = Supervisor((ManagedProcess(name="a", command=command, rank=0, clean_up=clean_up),), tmp_path / "logs")
    await supervisor.start()
    try:
        await until(lambda: said.is_file() and said.read_text().count("\n") == 3)
        first, second, _ = said.read_text().split()

        assert cleaned_up == [(first, set()), (second, set())]
    finally:
        await supervisor.stop()
    assert len(cleaned_up) == 2  # a process that is stopped in order releases its lease itself


async def test_what_dies_again_and_again_waits_between(tmp_path: Path) -> None:
    """It does not spin: four deaths take at least the waits between them."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with supervised(tmp_path, shell("x", "echo again; exit 7")) as supervisor:
        await until(lambda: supervisor.statistics()["x"].deaths >= 4)

        assert loop.time() - began >= 0.3
        assert supervisor.statistics()["x"].last_code == 7
        assert supervisor.log_tail("x").count("again") >= 4
        assert supervisor.last_line("x") == "again"


async def test_what_will_not_end_is_killed_with_all_it_started(tmp_path: Path) -> None:
    """A part that ignores SIGTERM, and its own children, are gone after the bound."""
    pids = tmp_path / "pids"
    script = f"trap '' TERM; sleep 1000 & echo $! $$ > {pids}; while :; do sleep 1000; done"
    async with supervised(tmp_path, shell("stubborn", script)):
        await until(lambda: pids.exists() and len(pids.read_text().split()) == 2)

    await until(lambda: not any(alive(int(pid)) for pid in pids.read_text().split()))


async def test_children_of_a_part_that_dies_do_not_stay(tmp_path: Path) -> None:
    """What a killed part had started in its session is killed too."""
    pids = tmp_path / "pids"
    async with supervised(tmp_path, shell("x", f"sleep 1000 & echo $! >> {pids}; wait")) as supervisor:
        await until(lambda: pids.exists() and pids.read_text().strip())
        child = int(pids.read_text().split()[0])
        os.kill(supervisor.pids["x"], signal.SIGKILL)

        await until(lambda: not alive(child))


async def test_kill_ends_everything_now(tmp_path: Path) -> None:
    """Without waiting for anybody's bound."""
    supervisor = Supervisor([ManagedProcess(name="x", command=SLEEP, rank=0, stop_within_s=60)], tmp_path)
    await supervisor.start()
    supervisor.kill()

    async with asyncio.timeout(30):
        await supervisor.stop()

    assert supervisor.pids == {}


async def test_a_command_that_does_not_exist_dies_with_a_reason(tmp_path: Path) -> None:
    """Its log names the missing command."""
    async with supervised(tmp_path, part("x", "/no/such/program")) as supervisor:
        await until(lambda: supervisor.statistics()["x"].deaths)

        assert "/no/such/program" in supervisor.log_tail("x")


def test_a_log_that_grows_too_large_is_moved_aside(tmp_path: Path) -> None:
    """Its writer goes on in the emptied file; one old file is kept."""
    path = tmp_path / "x.log"
    with path.open("ab", buffering=0) as writer:
        writer.write(b"a" * 100)
        trim_log(path, 1000)
        assert path.stat().st_size == 100

        writer.write(b"b" * 1000)
        trim_log(path, 1000)
        writer.write(b"c")

    assert path.read_bytes() == b"c"
    assert (tmp_path / "x.log.1").stat().st_size == 1100
    trim_log(tmp_path / "none.log")


@pytest.mark.parametrize("number", [signal.SIGKILL])
async def test_parts_die_with_the_supervisor(tmp_path: Path, number: signal.Signals) -> None:
    """`kill -9` of the supervising process leaves none of its parts."""
    script = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from pilotlight_supervisor.supervisor import ManagedProcess, Supervisor\n"
        "async def main():\n"
        f"    s = Supervisor([ManagedProcess(name=n, command={SLEEP!r}, rank=0) for n in 'ab'], Path(sys.argv[1]))\n"
        "    await s.start()\n    print(*s.pids.values(), flush=True)\n    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    pids = [int(pid) for pid in (await process.stdout.readline()).split()]
    assert len(pids) == 2

    process.send_signal(number)
    await process.wait()

    await until(lambda: not any(alive(pid) for pid in pids))


async def test_a_part_has_its_variables_and_a_log_of_our_own(tmp_path: Path) -> None:
    """In addition to the supervisor's; other users cannot read its log."""
    printing = ManagedProcess(
        name="a", command=("/bin/sh", "-c", "echo $MINE $PATH; exec sleep 1000"), rank=0, env={"MINE": "1"}
    )
    async with supervised(tmp_path, printing) as supervisor:
        await until(lambda: supervisor.log_tail("a") == f"1 {os.environ['PATH']}\n")

        assert supervisor.log_path("a").stat().st_mode & 0o777 == 0o600
        assert supervisor.log_path("a").parent.stat().st_mode & 0o777 == 0o700
