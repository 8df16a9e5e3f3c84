"""Keeps processes running: starts them in order, restarts those that die, and ends them in reverse order.

Each process has its own session, so that its children end with it, and ends with the supervisor for any reason. Output
goes to `<logs>/<name>.log`, which is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import time
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count, groupby
from pathlib import Path

import structlog

from pilotlight_core.host.file_permissions import OWNER_ONLY, private_file, private_folder
from pilotlight_core.model.ids import token
from pilotlight_supervisor.embedded_bus import with_parent

log = structlog.get_logger(__name__)

FIRST_BACKOFF_S = 0.1
LONGEST_BACKOFF_S = 5.0
STEADY_S = 10.0
"""Seconds of life after which a death counts as the first again."""
LAUNCH = "PILOTLIGHT_LAUNCH"
"""The variable with the id of the process's launch."""
CLEANUP_TIMEOUT = 1.0
MAX_LOG = 16 * 2**20
TRIM_EVERY_S = 1.0
TAIL = 3000
LAST_LINE = 500


@dataclass(frozen=True, kw_only=True)
class ManagedProcess:
    name: str
    command: tuple[str, ...]
    rank: int
    """Processes start in rising order, each rank when the one before is ready, and end in falling order."""
    stop_within_s: float = 5.0
    """Seconds from SIGTERM to SIGKILL."""
    env: Mapping[str, str] = field(default_factory=dict)
    """In addition to the supervisor's own."""
    withheld: tuple[str, ...] = ()
    """Beginnings of the supervisor's variables that it does not get."""
    ready: Callable[[], Awaitable[None]] | None = None
    """Called after the first start; returns when the process is ready."""
    clean_up: Callable[[str], Awaitable[None]] | None = None
    """Called after each death with the ended process's `LAUNCH`, before the restart."""


@dataclass(frozen=True, kw_only=True)
class ProcessStatistics:
    """`pid` 0: it does not run."""

    pid: int
    deaths: int
    last_code: int | None


@dataclass(kw_only=True)
class _Kept:
    part: ManagedProcess
    pid: int = 0
    launch: str = ""
    deaths: int = 0
    last_code: int | None = None
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


def backoff(deaths: int) -> float:
    """Seconds before the start that follows `deaths` deaths in a row: none, then 0.1 s doubling up to 5 s."""
    return 0.0 if deaths <= 1 else min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** (deaths - 2))


class Supervisor:
    """Keeps `parts` running; calls `on_change` whenever a pid changes."""

    def __init__(
        self, parts: Iterable[ManagedProcess], logs: Path, on_change: Callable[[], None] = lambda: None
    ) -> None:
        self._kept = {part.name: _Kept(part=part) for part in parts}
        self._logs = logs
        self._on_change = on_change
        self._trimmer: asyncio.Task[None] | None = None

    @property
    def pids(self) -> dict[str, int]:
        return {name: kept.pid for name, kept in self._kept.items() if kept.pid}

    def statistics(self) -> dict[str, ProcessStatistics]:
        return {
            name: ProcessStatistics(pid=kept.pid, deaths=kept.deaths, last_code=kept.last_code)
            for name, kept in self._kept.items()
        }

    def log_path(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def log_tail(self, name: str) -> str:
        path = self.log_path(name)
        return path.read_bytes()[-TAIL:].decode(errors="replace") if path.is_file() else ""

    def last_line(self, name: str) -> str:
        """The last line of a process's output, which often says why it ended."""
        return (self.log_tail(name).strip().splitlines() or [""])[-1][-LAST_LINE:]

    async def start(self) -> None:
        """Start all processes, rank by rank; a rank waits until the one before is ready."""
        private_folder(self._logs, OWNER_ONLY)
        self._trimmer = asyncio.create_task(self._trim_logs())
        for _, rank in groupby(sorted(self._kept.values(), key=_rank), key=_rank):
            members = list(rank)
            for kept in members:
                kept.task = asyncio.create_task(self._keep(kept, await self._launch(kept)))
                kept.task.add_done_callback(partial(_log_crash, kept.part.name))
            for kept in members:
                if kept.part.ready is not None:
                    await kept.part.ready()

    async def add(self, part: ManagedProcess) -> None:
        """Keep a further process running from now on.

        Raises:
            OSError: it cannot be started.
        """
        kept = self._kept[part.name] = _Kept(part=part)
        try:
            process = await self._launch(kept)
        except OSError:
            del self._kept[part.name]
            raise
        kept.task = asyncio.create_task(self._keep(kept, process))
        kept.task.add_done_callback(partial(_log_crash, part.name))

    async def remove(self, name: str) -> None:
        """End one of the processes, within its `stop_within_s`, and keep it no more."""
        kept = self._kept.get(name)
        if kept is not None:
            kept.stopping.set()
            if kept.task is not None:
                await asyncio.wait([kept.task])
            self._kept.pop(name, None)

    async def stop(self) -> None:
        """End all processes, last rank first; each rank is bounded by the longest `stop_within_s` of its members."""
        for _, rank in groupby(sorted(self._kept.values(), key=_rank, reverse=True), key=_rank):
            members = [kept for kept in rank if kept.task is not None]
            for kept in members:
                kept.stopping.set()
            for kept in members:
                if kept.task is not None:
                    await asyncio.wait([kept.task])
        if self._trimmer is not None:
            self._trimmer.cancel()
            await asyncio.wait([self._trimmer])

    def kill(self) -> None:
        """Kill all processes now; `stop` then returns soon."""
        for kept in self._kept.values():
            kept.stopping.set()
            _kill_group(kept.pid)

    async def _keep(self, kept: _Kept, process: Process) -> None:
        deaths_in_a_row = 0
        while True:
            started_at = time.monotonic()
            await self._until_gone(kept, process)
            if kept.stopping.is_set():
                return
            deaths_in_a_row = 1 if time.monotonic() - started_at > STEADY_S else deaths_in_a_row + 1
            kept.deaths += 1
            pause = backoff(deaths_in_a_row)
            line = self.last_line(kept.part.name)
            code = process.returncode
            log.warning("a part died", part=kept.part.name, code=code, start_again_in_s=pause, last_line=line)
            await self._clean_up(kept)
            again = await self._launch_again(kept, deaths_in_a_row)
            if again is None:
                return
            process = again

    async def _clean_up(self, kept: _Kept) -> None:
        if kept.part.clean_up is None:
            return
        try:
            async with asyncio.timeout(CLEANUP_TIMEOUT):
                await kept.part.clean_up(kept.launch)
        except Exception:  # others then wait for a timeout
            log.exception("a dead part was not cleaned up", part=kept.part.name)

    async def _launch_again(self, kept: _Kept, deaths_in_a_row: int) -> Process | None:
        """The next process, after a pause, however often that fails; None if it is to end."""
        for deaths in count(deaths_in_a_row):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(backoff(deaths)):
                    await kept.stopping.wait()
            if kept.stopping.is_set():
                break
            try:
                return await self._launch(kept)
            except OSError as error:  # no memory, file or process left at the moment
                log.warning("a part cannot be started", part=kept.part.name, error=str(error))
        return None

    async def _launch(self, kept: _Kept) -> Process:
        kept.launch = token(8)
        with private_file(self.log_path(kept.part.name)).open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *with_parent(*kept.part.command),
                env={**_without(os.environ, kept.part.withheld), **kept.part.env, LAUNCH: kept.launch},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        kept.pid = process.pid
        self._changed()
        return process

    async def _until_gone(self, kept: _Kept, process: Process) -> None:
        """Wait until the process ends, by itself or because of `stopping`, and kill the rest of its session."""
        ended = asyncio.create_task(process.wait())
        stopping = asyncio.create_task(kept.stopping.wait())
        try:
            await asyncio.wait((ended, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM)
                await asyncio.wait((ended,), timeout=kept.part.stop_within_s)
            if not ended.done():
                log.warning("a part did not end in time", part=kept.part.name, within_s=kept.part.stop_within_s)
        finally:
            stopping.cancel()
            _kill_group(process.pid)
            await asyncio.wait((ended,))  # also where this fails: nobody else would
            kept.last_code = process.returncode
            kept.pid = 0
            self._changed()

    def _changed(self) -> None:
        try:
            self._on_change()
        except Exception:  # such as a full disk: the processes are kept running
            log.exception("a changed pid was not reported")

    async def _trim_logs(self) -> None:
        failing: set[str] = set()
        while True:
            await asyncio.sleep(TRIM_EVERY_S)
            for name in list(self._kept):
                try:
                    trim_log(self.log_path(name))
                except Exception as error:  # such as a full disk: it is retried, and logged once
                    if name not in failing:
                        log.warning("a log cannot be trimmed", part=name, exc_info=error)
                    failing.add(name)
                else:
                    failing.discard(name)


def trim_log(path: Path, limit: int = MAX_LOG) -> None:
    """Move a log that has grown beyond `limit` bytes to `<name>.1`, which it replaces.

    It is copied and emptied, because its writers keep it open and append.
    """
    try:
        if path.stat().st_size <= limit:
            return
        shutil.copyfile(path, path.with_name(f"{path.name}.1"))
        os.truncate(path, 0)
    except FileNotFoundError:
        return


def _log_crash(name: str, keeping: asyncio.Task[None]) -> None:
    if not keeping.cancelled() and (error := keeping.exception()) is not None:
        log.critical("a part is kept running no more", part=name, exc_info=error)


def _rank(kept: _Kept) -> int:
    return kept.part.rank


def _kill_group(pid: int) -> None:
    if pid:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _without(env: Mapping[str, str], beginnings: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in env.items() if not name.startswith(beginnings)}
