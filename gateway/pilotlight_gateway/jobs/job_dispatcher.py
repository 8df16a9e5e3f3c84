"""Starts the jobs of a gateway's shards.

The home of a function reads the work queue of each of its flows by sequence. The next home reads the same messages
again; a job is started once all the same, since its start is a compare-and-set on its record. Only some jobs of each
flow wait at the home at a time, so a million jobs are not a million calls. Between flows the home's scheduler decides.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, zip_longest

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusDown, BusError, Handler
from pilotlight_core.bus.doorbells import PendingReads
from pilotlight_core.bus.jetstream import READ_TIMEOUT, StreamMessage, StreamPage
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.demand import NO_BACKLOG, JobBacklog
from pilotlight_core.model.messages.job_messages import (
    AskJob,
    JobNote,
    JobPlace,
    JobsDue,
    JobsStored,
    PlannedStarts,
)
from pilotlight_core.model.messages.wire import decode
from pilotlight_core.model.subjects import JOB_STREAM
from pilotlight_gateway.jobs.job_flow import JobFlow, PlannedJobs
from pilotlight_gateway.jobs.job_runner import JobDependencies, JobRunner
from pilotlight_gateway.jobs.start_rate import StartRate

WAITING = 32
"""Jobs of one flow that wait at the home at a time."""
LOOK_EVERY_S = 5.0
"""How often the stream is asked for flows whose messages were missed."""
POLL_S = 5.0
"""How often a flow is read without a message."""
TIDY_EVERY_S = 0.5
STRAY_AFTER_S = 30.0
"""How long a done message waits for those before it."""
DRAIN_S = 5.0
PAUSE_S = 0.25
TELL_EVERY_S = 1.0
PLANNED_WITHIN_S = 900.0
"""Controllers hear of jobs that become due within this: a start that takes longer begins late."""
PLANNED_TOGETHER_S = 60.0
"""Jobs that become due within this count together."""
PLANNED_AT_MOST = 500
"""Functions that controllers hear of."""

log = structlog.get_logger(__name__)


@dataclass(kw_only=True, eq=False)
class DispatchedFlow:
    """A flow at its home."""

    flow: JobFlow
    shard: int
    pace: StartRate = field(default_factory=StartRate)
    bell: asyncio.Event = field(default_factory=asyncio.Event)
    rings: PendingReads = field(default_factory=PendingReads)
    """Messages that were received from the bus and not yet read from the stream."""
    waiting: int = 0
    """Runners that have not started."""
    width: int = WAITING
    """Bound of `waiting`: 1 once the tenant's limits hold a job back, then one more with each start."""
    held_until: float = 0.0
    """Unix seconds before which its tenant's limits let no job start."""
    lacks_money: bool = False
    """The last job that was looked at had no money: until one starts, no container is to start for those behind it."""
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """Of jobs that have not started."""
    tries: dict[str, int] = field(default_factory=dict)
    fresh: bool = True
    """Whether there may be unread messages."""
    look_at: float = 0.0
    """Monotonic seconds at which it is read without a message."""
    strays_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DispatcherStatistics:
    """A dispatcher at one instant."""

    flows: int
    known: int
    """Jobs that were read and are not over."""
    waiting: int
    running: int


class JobDispatcher:
    """A shard participant: runs the jobs of the shards whose home this gateway is."""

    def __init__(
        self,
        bus: Bus,
        ground: JobDependencies,
        *,
        region: str,
        gateway: str,
        drain_s: float = DRAIN_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`drain_s` is how long running jobs may go on when their gateway ends."""
        self._bus = bus
        self._ground = ground
        self._region = region
        self._gateway = gateway
        self._drain_s = drain_s
        self._clock = clock
        self._shards: set[int] = set()
        self._work: dict[str, DispatchedFlow] = {}
        self._functions: dict[str, dict[str, DispatchedFlow]] = {}
        """The same by the part of the subject that stands for the function."""
        self._running: dict[str, asyncio.Task[None]] = {}
        """Jobs that have started."""
        self._group: asyncio.TaskGroup | None = None
        self._bell = asyncio.Event()

    # -- shards --------------------------------------------------------------------------------------------------

    def begin(self, shard: int, epoch: int, state: bytes) -> None:  # noqa: ARG002 - the stream knows the rest
        """Start the jobs of a shard; see `ShardParticipant`."""
        self._shards.add(shard)
        self._bell.set()

    def end(self, shard: int) -> bytes:
        """Leave the jobs of a shard that have not started to the next home; the others go on."""
        self._shards.discard(shard)
        for subject in [subject for subject, work in self._work.items() if work.shard == shard]:
            self._leave(subject)
        return b""

    # -- its life ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run jobs until the block ends, then wait for running ones for `drain_s`."""
        handlers: dict[str, Handler] = {
            f"jobs.{self._region}.>": self._on_stored,
            subjects.jobs_asked(self._region, self._gateway): self._on_ask,
        }
        async with self._bus.listening(handlers, reconnected=self._reconnected), asyncio.TaskGroup() as group:
            self._group = group
            loops = [group.create_task(self._find_flows()), group.create_task(self._publish_planned())]
            try:
                yield
            finally:
                for loop in loops:
                    loop.cancel()
                await self._stop()

    def statistics(self) -> DispatcherStatistics:
        return DispatcherStatistics(
            flows=len(self._work),
            known=sum(len(work.flow) for work in self._work.values()),
            waiting=sum(work.waiting for work in self._work.values()),
            running=len(self._running),
        )

    def backlog(self, function: str) -> JobBacklog:
        """The known jobs of a function (`tenant:app.function`) that wait behind those that wait at the home."""
        flows = self._functions.get(subjects.jobs_of_function(self._region, function)) if self._functions else None
        if not flows:
            return NO_BACKLOG
        at, ready, held = self._ground.wall(), 0, 0
        for work in flows.values():
            if at >= work.held_until and not work.lacks_money:
                ready += work.flow.backlog(at)
            else:
                held += work.flow.backlog(at)
        return JobBacklog(ready, held)

    def planned(self) -> list[JobsDue]:
        """What the known jobs will ask for soon: in turns by owner of the function, of each what is due first.

        Jobs that limits of their tenant hold back are not among them.
        """
        at, found = self._ground.wall(), defaultdict[str, dict[str, PlannedJobs]](dict)
        for work in self._work.values():
            jobs = work.flow.planned(at, at + PLANNED_WITHIN_S, PLANNED_TOGETHER_S)
            if jobs is None or work.lacks_money or work.held_until > jobs.due_at:
                continue
            name = work.flow.function
            of_owner = found[name.partition(":")[0]]
            known = of_owner.get(name)
            of_owner[name] = jobs if known is None else known.joined(jobs, PLANNED_TOGETHER_S)
        first = (sorted(each.items(), key=lambda item: item[1].due_at) for each in found.values())
        turns = (item for turn in zip_longest(*first) for item in turn if item is not None)
        return [
            JobsDue(function, (jobs.due_at - at) * 1_000.0, jobs.jobs, jobs.version)
            for function, jobs in islice(turns, PLANNED_AT_MOST)
        ]

    async def _publish_planned(self) -> None:
        """Tell controllers what the known jobs will ask for, while there is any."""
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            if items := self.planned():
                with contextlib.suppress(BusDown):  # it is told again
                    message = PlannedStarts(items=tuple(items))
                    self._bus.publish_nowait(subjects.planned(self._region, self._gateway), message)

    async def _stop(self) -> None:
        self._group = None
        for subject in list(self._work):
            self._leave(subject)
        left = list(self._running.values())
        if left:
            log.info("jobs run still", jobs=len(left))
            _, cut = await asyncio.wait(left, timeout=self._drain_s)
            for task in cut:
                task.cancel()

    async def _reconnected(self) -> None:
        self._bell.set()
        for work in self._work.values():
            work.fresh = True
            work.bell.set()

    def _on_stored(self, subject: str, message: object, _: str) -> None:
        if not isinstance(message, JobsStored):
            return
        work = self._open(subject)
        if work is not None:
            work.fresh = True
            work.rings.ring()
            work.bell.set()

    def _on_ask(self, _: str, message: object, reply: str) -> None:
        if isinstance(message, AskJob) and reply:
            with contextlib.suppress(BusDown):
                self._bus.publish_nowait(reply, self.place(message.flow, message.job))

    def place(self, flow: str, job: str) -> JobPlace:
        """Where a job is in its queue, as far as this gateway knows."""
        work = self._work.get(flow)
        position = work.flow.position(job) if work is not None else None
        if work is None or position is None:
            return JobPlace()
        return JobPlace(position=position, seconds=work.pace.wait(position, self._clock()))

    async def _find_flows(self) -> None:
        """Find flows whose messages were missed, as those of a new shard."""
        while True:
            self._bell.clear()
            try:
                for subject in await self._bus.jetstream.depths(JOB_STREAM, f"jobs.{self._region}.>"):
                    self._open(subject)
            except BusError as error:
                log.debug("the work queue is not seen", error=str(error))
                self._bell.set()
                await asyncio.sleep(PAUSE_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._bell.wait()

    def _open(self, subject: str) -> DispatchedFlow | None:
        """The flow, if its shard is ours."""
        work = self._work.get(subject)
        if work is None and self._group is not None:
            shard = int(subject.split(".")[2])
            if shard in self._shards:
                work = self._work[subject] = DispatchedFlow(flow=JobFlow(subject), shard=shard)
                self._functions.setdefault(_function_part(subject), {})[subject] = work
                self._group.create_task(self._feed(work))
        return work

    def _remove(self, subject: str) -> DispatchedFlow:
        of_function = self._functions[_function_part(subject)]
        del of_function[subject]
        if not of_function:
            del self._functions[_function_part(subject)]
        return self._work.pop(subject)

    def _leave(self, subject: str) -> None:
        work = self._remove(subject)
        for task in list(work.tasks.values()):
            task.cancel()
        work.bell.set()

    # -- one flow ------------------------------------------------------------------------------------------------

    async def _feed(self, work: DispatchedFlow) -> None:
        """Read a flow and start its jobs while there are any."""
        flow, tidied = work.flow, 0.0
        while self._work.get(flow.subject) is work:
            work.bell.clear()
            try:
                await self._read(work)
                if self._clock() - tidied >= TIDY_EVERY_S or not flow:
                    tidied = self._clock()
                    await self._tidy(work)
            except BusError as error:
                log.debug("a flow cannot be read", flow=flow.subject, error=str(error))
                await asyncio.sleep(PAUSE_S)
                continue
            if self._work.get(flow.subject) is not work:  # its shard went elsewhere meanwhile
                return
            self._start(work)
            if not flow and not work.fresh and not work.rings.due:
                self._remove(flow.subject)
                return
            await self._pause(work)

    async def _pause(self, work: DispatchedFlow) -> None:
        due = work.flow.due_at() if work.waiting < work.width else None
        if work.held_until > self._ground.wall():
            due = work.held_until
        left = POLL_S if due is None else max(0.0, due - self._ground.wall())
        look = POLL_S if work.fresh else max(0.0, work.look_at - self._clock())  # fresh: it knows of enough jobs
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(left, look)):
                await work.bell.wait()
        # Jobs that start and end ring too: what was heard of and not found is looked for by the clock alone.
        work.fresh = work.fresh or self._clock() >= work.look_at

    async def _read(self, work: DispatchedFlow) -> None:
        flow, jetstream = work.flow, self._bus.jetstream
        while work.fresh and flow.wants:
            page = await jetstream.persist(partial(self._page, flow), READ_TIMEOUT)
            work.rings.read(len(page.records))
            for record in page.records:
                flow.add(record.seq, _notes(record))
            if not page.records:
                work.fresh = False
                work.look_at = self._clock() + (work.rings.pause() or POLL_S)

    async def _page(self, flow: JobFlow, timeout_s: float) -> StreamPage:
        return await self._bus.jetstream.page(JOB_STREAM, flow.subject, flow.next, timeout=timeout_s)

    async def _tidy(self, work: DispatchedFlow) -> None:
        """Remove the messages of jobs that are over."""
        flow, at = work.flow, self._clock()
        if below := flow.purge_below():
            await self._bus.purge_before(JOB_STREAM, flow.subject, below)
        if at - work.strays_at >= STRAY_AFTER_S:
            work.strays_at = at
            for seq in flow.strays():
                await self._bus.jetstream.delete(JOB_STREAM, seq)

    def _start(self, work: DispatchedFlow) -> None:
        tenant = work.flow.subject.split(".")[4]
        if self._ground.wall() < work.held_until:
            return
        while self._group is not None and work.waiting < work.width:
            name = work.flow.take(self._ground.wall())
            if name is None:
                return
            work.waiting += 1
            work.tasks[name] = self._group.create_task(self._see_through(work, tenant, name))

    async def _see_through(self, work: DispatchedFlow, tenant: str, name: str) -> None:
        """Run one job to its end, or until it is put off."""

        def started() -> None:
            work.waiting -= 1
            work.width, work.lacks_money = min(WAITING, work.width + 1), False
            self._running[name] = work.tasks.pop(name)
            work.pace.started(self._clock())
            work.bell.set()

        runner = JobRunner(self._ground, tenant, name, started)
        try:
            if name in self._running:  # it was ours before the shard came back
                due_at: float | None = self._ground.wall() + 1.0
            else:
                due_at = await runner.run(work.tries.get(name, 0))
        except Exception:
            log.exception("looking after a job failed; it is tried again", job=name)
            due_at = self._ground.wall() + LOOK_EVERY_S
        finally:
            if runner.sent:
                self._running.pop(name, None)
                self._ended(tenant)
            else:
                work.waiting -= 1
                work.tasks.pop(name, None)
        if runner.held and due_at is not None:
            work.flow.give_back(name)
            work.held_until, work.width, work.lacks_money = due_at, 1, runner.lacks_money
            work.bell.set()
        else:
            self._settle(work, name, due_at)

    def _ended(self, tenant: str) -> None:
        """Let jobs start that the tenant's limits have held back."""
        for work in self._work.values():
            if work.held_until and work.flow.subject.split(".")[4] == tenant:
                work.held_until = 0.0
                work.bell.set()

    def _settle(self, work: DispatchedFlow, name: str, due_at: float | None) -> None:
        if due_at is None:
            work.flow.remove(name)
            work.tries.pop(name, None)
        else:
            work.flow.put_off(name, due_at)
            work.tries[name] = work.tries.get(name, 0) + 1
        work.bell.set()


def _function_part(subject: str) -> str:
    return subject.rsplit(".", 2)[0]


def _notes(record: StreamMessage) -> tuple[JobNote, ...]:
    """The jobs that a message names. The sweeper publishes those of an unreadable one again."""
    try:
        message = decode(record.data)
    except msgspec.DecodeError as error:
        log.error("a message of the work queue cannot be read", seq=record.seq, error=str(error))
        return ()
    return message.jobs if isinstance(message, JobsStored) else ()
