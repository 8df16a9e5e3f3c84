"""Whether agents have their blanks, by what their metrics say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pilotlight_supervisor.blank_readiness import missing_in, wait_blanks
from pilotlight_supervisor.free_ports import free_port
from pilotlight_supervisor.supervisor import ManagedProcess, Supervisor

LACKS, HAS = "# HELP x y\npilotlight_agent_blanks_missing 2.0\n", "a 1\npilotlight_agent_blanks_missing 0.0\nb 2\n"


@asynccontextmanager
async def agent(*answers: str) -> AsyncIterator[str]:
    """The address of metrics that say one thing after the other, the last for ever."""
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readline()).startswith(b"GET /metrics HTTP/1.0")
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + (left.pop(0) if len(left) > 1 else left[0]).encode())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/metrics"


@asynccontextmanager
async def supervisor(folder: Path, command: str = "sleep 1000") -> AsyncIterator[Supervisor]:
    """One that keeps an agent of a shell."""
    kept = Supervisor([ManagedProcess(name="agent", rank=0, command=("/bin/sh", "-c", f"exec {command}"))], folder)
    await kept.start()
    try:
        yield kept
    finally:
        await kept.stop()


def test_metrics_say_how_many_are_missing() -> None:
    """Other names that begin alike do not."""
    assert missing_in(LACKS) == 2
    assert missing_in(HAS) == 0
    assert missing_in("pilotlight_agent_blanks_missing_ever 3\npilotlight_agent_blanks_missing x\n") is None


async def test_it_waits_until_no_agent_lacks_one(tmp_path: Path) -> None:
    """Also for one that does not answer yet."""
    async with supervisor(tmp_path) as kept, agent("", LACKS, HAS) as url:
        assert await wait_blanks(kept, {"agent": url})


async def test_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    """Calls are accepted anyway, and start slower."""
    async with supervisor(tmp_path) as kept, agent(LACKS) as url:
        assert not await wait_blanks(kept, {"agent": url}, within_s=0.2)


async def test_an_agent_that_dies_is_not_waited_for(tmp_path: Path) -> None:
    """Its log says why; the supervisor starts it again and again."""
    async with supervisor(tmp_path, "false") as kept:
        assert await wait_blanks(kept, {"agent": f"http://127.0.0.1:{free_port()}/metrics"})
