"""The worker processes of a gateway, and whose turn it is.

A tenant has one worker at most, and those who wait take turns by tenant: however much one sends, another waits for
about one body. A worker that takes too long is killed, and its body refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from pilotlight_core.model.errors import Unavailable
from pilotlight_gateway.bodies.worker_frames import LENGTH, MOST_HEAD, Work, WorkReply, head_of, reply_decoder

WORKERS = 2
WORK_S = 15.0
"""For one body, on a busy machine; a quiet one takes two seconds for the worst."""
IDLE_S = 60.0
"""After which an idle worker ends."""
WAITING = 64
"""Bodies of one tenant that wait."""
PIECE_BYTES = 2**20
END_S = 1.0
COMMAND = (sys.executable, "-I", "-m", "pilotlight_gateway.bodies.body_worker")

log = structlog.get_logger(__name__)


class WorkerDied(Exception):
    """The worker ended without a reply, or was ended because it took too long."""


class TenantTurns:
    """Who has a worker, and who waits for one. Pure but for the futures of those who wait."""

    def __init__(self, workers: int) -> None:
        self._free = workers
        self._busy: set[str] = set()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """In the order of turns."""

    def take(self, tenant: str, future: asyncio.Future[None]) -> None:
        """Resolve `future` when it is the tenant's turn.

        Raises:
            Unavailable: too many of the tenant's bodies wait.
        """
        waiting = self._waiting.setdefault(tenant, deque())
        if len(waiting) >= WAITING:
            raise Unavailable(
                f"{WAITING} large bodies of tenant {tenant} wait to be read.", code="overloaded", retry_after=1.0
            )
        waiting.append(future)
        self._grant()

    def give_back(self, tenant: str) -> None:
        self._busy.discard(tenant)
        self._free += 1
        self._grant()

    def _grant(self) -> None:
        for tenant in list(self._waiting):
            if not self._free:
                return
            if tenant in self._busy:
                continue
            waiting = self._waiting.pop(tenant)
            while waiting and (future := waiting.popleft()):
                if not future.done():
                    self._free -= 1
                    self._busy.add(tenant)
                    future.set_result(None)
                    break
            if waiting:
                self._waiting[tenant] = waiting  # behind the others


class BodyWorkerProcess:
    """One worker process. After any error it is of no more use: `kill` it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.ends = False
        """Whether it has said that it ends."""

    @classmethod
    async def start(cls) -> BodyWorkerProcess:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=PIECE_BYTES,
            env={"PATH": os.defpath},  # the gateway's has secrets
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the gateway
        )
        return cls(process)

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def send(self, work: Work, payload: bytes) -> WorkReply:
        """The head of the reply; its payload is read by `pieces`.

        Raises:
            WorkerDied.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: S101, PT018 - they are pipes
        try:
            stdin.write(head_of(work))
            stdin.write(payload)
            await stdin.drain()
            (length,) = LENGTH.unpack(await stdout.readexactly(LENGTH.size))
            if length > MOST_HEAD:
                raise WorkerDied
            reply = reply_decoder.decode(await stdout.readexactly(length))
        except (OSError, asyncio.IncompleteReadError):
            raise WorkerDied from None
        self.ends = reply.last
        return reply

    async def pieces(self, size: int) -> list[bytes]:
        """The payload of a reply. Raises WorkerDied."""
        stdout = self._process.stdout
        assert stdout is not None  # noqa: S101 - it is a pipe
        found: list[bytes] = []
        while size:
            piece = await stdout.read(min(size, PIECE_BYTES))
            if not piece:
                raise WorkerDied
            found.append(piece)
            size -= len(piece)
        return found

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> None:
        """Wait until the killed process is gone."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await self._process.wait()


class BodyWorkers:
    """Up to `WORKERS` workers, started when they are needed. `running()` ends them."""

    def __init__(self, workers: int = WORKERS) -> None:
        self._turns = TenantTurns(workers)
        self._idle: list[BodyWorkerProcess] = []
        self._all: set[BodyWorkerProcess] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._used_at = 0.0

    @property
    def processes(self) -> int:
        return len(self._all)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """End idle workers meanwhile, and all of them at the end."""
        reaper = asyncio.get_running_loop().create_task(self._reap())
        try:
            yield
        finally:
            reaper.cancel()
            await self.end()

    async def end(self) -> None:
        """Kill all workers, and wait until they are gone."""
        for worker in list(self._all):
            self._drop(worker)
        await asyncio.gather(*self._ending)

    @asynccontextmanager
    async def worker(self, tenant: str) -> AsyncIterator[BodyWorkerProcess]:
        """A worker for one body of the tenant, within `WORK_S` from when it is its turn.

        Raises:
            Unavailable: too many of the tenant's bodies wait.
            WorkerDied: as the block does, or the time is over.
        """
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._turns.take(tenant, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._turns.give_back(tenant)
            raise
        worker: BodyWorkerProcess | None = None
        try:
            async with asyncio.timeout(WORK_S):
                worker = await self._take()
                yield worker
                if not worker.ends:
                    self._idle.append(worker)
                    worker = None
        except TimeoutError:
            log.warning("a body took too long to handle", tenant=tenant, seconds=WORK_S)
            raise WorkerDied from None
        finally:
            if worker is not None:
                self._drop(worker)
            self._used_at = loop.time()
            self._turns.give_back(tenant)

    async def _take(self) -> BodyWorkerProcess:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            self._drop(worker)
        worker = await BodyWorkerProcess.start()
        self._all.add(worker)
        return worker

    def _drop(self, worker: BodyWorkerProcess) -> None:
        worker.kill()
        self._all.discard(worker)
        task = asyncio.get_running_loop().create_task(worker.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _reap(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(IDLE_S)
            if loop.time() - self._used_at >= IDLE_S:
                while self._idle:
                    self._drop(self._idle.pop())
