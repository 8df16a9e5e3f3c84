"""Keeps processes running: starts them in order, starts again what dies, ends them in reverse order.

Each part is a session of its own, so that nothing it started stays behind, and dies with this process, however that
dies. Output goes to `<logs>/<name>.log`, which is bounded.
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

FIRST_BACKOFF = 0.1
LONGEST_BACKOFF = 5.0
STEADY = 10.0
"""Seconds of life after which a death counts as the first again."""
LAUNCH = "PILOTLIGHT_LAUNCH"
"""The variable that tells a process what this life of its part is called."""
BURY_WITHIN = 1.0
MAX_LOG = 16 * 2**20
TRIM_EVERY = 1.0
TAIL = 3000
LAST_WORDS = 500


@dataclass(frozen=True, kw_only=True)
class ManagedProcess:
    """One process to keep running."""

    name: str
    command: tuple[str, ...]
    rank: int
    """Parts start in rising order, each rank when the one before is ready, and end in falling order."""
    stop_within: float = 5.0
    """Seconds from SIGTERM to SIGKILL."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables on top of our own."""
    ready: Callable[[], Awaitable[None]] | None = None
    """Returns when it can be relied on; asked when it was started first."""
    bury: Callable[[str], Awaitable[None]] | None = None
    """Asked after each death, with the dead process's `LAUNCH`, before the next one is started."""


@dataclass(frozen=True, kw_only=True)
class ProcessStatistics:
    """How a part is. `pid` 0: it does not run at the moment."""

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
    return 0.0 if deaths <= 1 else min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (deaths - 2))


class Supervisor:
    """Keeps `parts` running; `on_change` is told whenever a pid changes."""

    def __init__(
        self, parts: Iterable[ManagedProcess], logs: Path, on_change: Callable[[], None] = lambda: None
    ) -> None:
        self._kept = {part.name: _Kept(part=part) for part in parts}
        self._logs = logs
        self._on_change = on_change
        self._trimmer: asyncio.Task[None] | None = None

    @property
    def pids(self) -> dict[str, int]:
        """Pids of the parts that run."""
        return {name: kept.pid for name, kept in self._kept.items() if kept.pid}

    def statistics(self) -> dict[str, ProcessStatistics]:
        return {
            name: ProcessStatistics(pid=kept.pid, deaths=kept.deaths, last_code=kept.last_code)
            for name, kept in self._kept.items()
        }

    def log_path(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def log_tail(self, name: str) -> str:
        """The end of a part's output."""
        path = self.log_path(name)
        return path.read_bytes()[-TAIL:].decode(errors="replace") if path.is_file() else ""

    def last_words(self, name: str) -> str:
        """The last line of a part's output: why it ended, if it could say so."""
        return (self.log_tail(name).strip().splitlines() or [""])[-1][-LAST_WORDS:]

    async def start(self) -> None:
        """Start all parts, rank by rank; a rank waits until the one before is ready."""
        private_folder(self._logs, OWNER_ONLY)
        self._trimmer = asyncio.create_task(self._trim_logs())
        for _, rank in groupby(sorted(self._kept.values(), key=_rank), key=_rank):
            members = list(rank)
            for kept in members:
                kept.task = asyncio.create_task(self._keep(kept, await self._launch(kept)))
                kept.task.add_done_callback(partial(_tell_crash, kept.part.name))
            for kept in members:
                if kept.part.ready is not None:
                    await kept.part.ready()

    async def stop(self) -> None:
        """End all parts, last rank first; each rank is bounded by the longest `stop_within` of its members."""
        for _, rank in groupby(sorted(self._kept.values(), key=_rank, reverse=True), key=_rank):
            members = [kept for kept in rank if kept.task is not None]
            for kept in members:
                kept.stopping.set()
            for kept in members:
                if kept.task is not None:
                    await asyncio.wait([kept.task])
                    _kill_group(kept.pid)  # it is gone, unless keeping it crashed
        if self._trimmer is not None:
            self._trimmer.cancel()
            await asyncio.wait([self._trimmer])

    def kill(self) -> None:
        """End all parts now; `stop` then returns soon."""
        for kept in self._kept.values():
            kept.stopping.set()
            _kill_group(kept.pid)

    async def _keep(self, kept: _Kept, process: Process) -> None:
        deaths_in_a_row = 0
        while True:
            born = time.monotonic()
            await self._until_gone(kept, process)
            if kept.stopping.is_set():
                return
            deaths_in_a_row = 1 if time.monotonic() - born > STEADY else deaths_in_a_row + 1
            kept.deaths += 1
            pause = backoff(deaths_in_a_row)
            words = self.last_words(kept.part.name)
            code = process.returncode
            log.warning("a part died", part=kept.part.name, code=code, start_again_in_s=pause, last_words=words)
            await self._bury(kept)
            again = await self._launch_again(kept, deaths_in_a_row)
            if again is None:
                return
            process = again

    async def _bury(self, kept: _Kept) -> None:
        if kept.part.bury is None:
            return
        try:
            async with asyncio.timeout(BURY_WITHIN):
                await kept.part.bury(kept.launch)
        except Exception:  # what it would have spared others, they wait for now
            log.exception("a dead part is not buried", part=kept.part.name)

    async def _launch_again(self, kept: _Kept, deaths_in_a_row: int) -> Process | None:
        """The part's next process, after a pause, however often that fails; None: the part is to end."""
        for deaths in count(deaths_in_a_row):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(backoff(deaths)):
                    await kept.stopping.wait()
            if kept.stopping.is_set():
                break
            try:
                return await self._launch(kept)
            except OSError as error:  # no memory, no file or no process more, just now
                log.warning("a part cannot be started", part=kept.part.name, error=str(error))
        return None

    async def _launch(self, kept: _Kept) -> Process:
        kept.launch = token(8)
        with private_file(self.log_path(kept.part.name)).open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *with_parent(*kept.part.command),
                env={**os.environ, **kept.part.env, LAUNCH: kept.launch},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        kept.pid = process.pid
        self._changed()
        return process

    async def _until_gone(self, kept: _Kept, process: Process) -> None:
        """Until it ends by itself, or because it is told to; nothing of its session is left then."""
        ended = asyncio.create_task(process.wait())
        told = asyncio.create_task(kept.stopping.wait())
        try:
            await asyncio.wait((ended, told), return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM)
                await asyncio.wait((ended,), timeout=kept.part.stop_within)
            if not ended.done():
                log.warning("a part did not end in time", part=kept.part.name, within_s=kept.part.stop_within)
            _kill_group(process.pid)
            await ended
        finally:
            told.cancel()
            kept.last_code = process.returncode
            kept.pid = 0
            self._changed()

    def _changed(self) -> None:
        try:
            self._on_change()
        except Exception:  # a full disk, above all: the parts are kept running
            log.exception("a changed pid is not told")

    async def _trim_logs(self) -> None:
        failing: set[str] = set()
        while True:
            await asyncio.sleep(TRIM_EVERY)
            for name in self._kept:
                try:
                    trim_log(self.log_path(name))
                except Exception as error:  # a full disk, above all: it is tried again, and told once
                    if name not in failing:
                        log.warning("a log cannot be trimmed", part=name, exc_info=error)
                    failing.add(name)
                else:
                    failing.discard(name)


def trim_log(path: Path, limit: int = MAX_LOG) -> None:
    """Move a log that has grown beyond `limit` bytes to `<name>.1`, in place of the one that was there.

    It is copied and emptied, since its writers keep it open; they append, so they go on at its start.
    """
    try:
        if path.stat().st_size <= limit:
            return
        shutil.copyfile(path, path.with_name(f"{path.name}.1"))
        os.truncate(path, 0)
    except FileNotFoundError:
        return


def _tell_crash(name: str, keeping: asyncio.Task[None]) -> None:
    if not keeping.cancelled() and (error := keeping.exception()) is not None:
        log.critical("a part is kept running no more", part=name, exc_info=error)


def _rank(kept: _Kept) -> int:
    return kept.part.rank


def _kill_group(pid: int) -> None:
    if pid:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
