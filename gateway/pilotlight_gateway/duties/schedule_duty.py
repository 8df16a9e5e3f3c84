"""The duty that stores the jobs of schedules, shortly before their ticks.

It follows the apps of the registry, and remembers nothing that a process after it would need: which jobs have to stand
follows from the apps and the instant (`tick_plan`), and a job that stands already is found under its id. Therefore a
process that has lost its lease unnoticed does no harm either.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import structlog

from pilotlight_core.bus import Bus, Lease, Mirror, WrongRevision
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.job_messages import JobNote, note_of
from pilotlight_core.model.records.jobs import JobState
from pilotlight_core.model.schedules.ticks import is_tick
from pilotlight_core.model.spec import AppRecord
from pilotlight_core.model.subjects import REGISTRY_BUCKET
from pilotlight_core.model.timers import Timers
from pilotlight_gateway.duties.scheduled_versions import ScheduledVersions
from pilotlight_gateway.jobs.job_port import JobStore, PublishJob
from pilotlight_gateway.leased import while_leased
from pilotlight_gateway.schedules.scheduled_methods import ScheduledMethod, scheduled_methods
from pilotlight_gateway.schedules.tick_jobs import restored, tick_job, tick_job_id, withdrawn
from pilotlight_gateway.schedules.tick_plan import plan_ticks

APPS = "app."
AT_A_TIME = 64
"""Jobs that are stored at once: many ticks come at full hours."""
LOOK_EVERY_S = 5.0
"""Between two looks at the clock, which may be set."""
SET_BACK_S = 1.0
"""A clock that goes back by less is not looked at."""
AGAIN_S = 1.0
"""After a job that could not be stored."""

log = structlog.get_logger(__name__)
_apps = msgspec.msgpack.Decoder(AppRecord)


@dataclass(frozen=True, kw_only=True)
class TickDependencies:
    """What the duty stores jobs with."""

    jobs: JobStore
    publish: PublishJob
    region: str
    wall: Callable[[], float] = time.time
    """Unix seconds."""


@dataclass(frozen=True, kw_only=True)
class ScheduleDutyStatistics:
    """Counts since this process has the duty."""

    methods: int
    """Functions and methods with a schedule."""
    stored: dict[str, int]
    """Jobs of ticks: `ahead` of them, or `late`."""


class ScheduleDuty:
    """Stores the jobs of ticks while it holds the lease."""

    def __init__(self, bus: Bus, ground: TickDependencies, *, holder: str) -> None:
        self._bus = bus
        self._ground = ground
        self._holder = holder
        self._ticker: _Ticker | None = None

    def statistics(self) -> ScheduleDutyStatistics | None:
        """None while another process has the duty."""
        return self._ticker.statistics() if self._ticker is not None else None

    async def run(self) -> None:
        """Run until cancelled."""
        await while_leased(self._bus, self._bus.lease("duty.schedules", self._holder), self._tick)

    async def _tick(self, _lease: Lease) -> None:
        versions = ScheduledVersions(self._bus.kv(REGISTRY_BUCKET))
        async with self._bus.mirror(REGISTRY_BUCKET, APPS) as mirror:
            self._ticker = _Ticker(self._ground, mirror, versions)
            try:
                await self._ticker.run()
            finally:
                self._ticker = None


@dataclass(kw_only=True)
class _Scheduled:
    """A method with its app, and the last tick whose job stands."""

    method: ScheduledMethod
    app: AppRecord
    stored: int = 0


@dataclass
class _Ticker:
    """Stores jobs for the apps of a mirror."""

    ground: TickDependencies
    mirror: Mirror
    versions: ScheduledVersions
    _known: dict[str, _Scheduled] = field(default_factory=dict)
    """By the name of the method."""
    _of_app: dict[str, set[str]] = field(default_factory=dict)
    """By the key of the app, the names of its methods."""
    _due: Timers[str] = field(default_factory=Timers)
    _dirty: set[str] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _counts: Counter[str] = field(default_factory=Counter)
    _latest: float = 0.0
    """What the clock has shown last."""

    def statistics(self) -> ScheduleDutyStatistics:
        return ScheduleDutyStatistics(methods=len(self._known), stored=dict(self._counts))

    async def run(self) -> None:
        self.mirror.on_change.append(self._note)
        try:
            self._dirty.update(key for key, _ in self.mirror.items())
            async with self.versions.all_at_once():
                await self._take_changes()
            while True:
                self._changed.clear()
                self._inspect_clock()
                await self._take_changes()
                await self._store_due()
                await self._wait()
        finally:
            self.mirror.on_change.remove(self._note)

    def _note(self, key: str, _entry: object) -> None:
        self._dirty.add(key)
        self._changed.set()

    async def _wait(self) -> None:
        due_at = self._due.next()
        left = LOOK_EVERY_S if due_at is None else min(LOOK_EVERY_S, due_at - self.ground.wall())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, left)):
                await self._changed.wait()

    def _inspect_clock(self) -> None:
        """After it was set back, ticks come again that lie before those that were stored."""
        latest, self._latest = self._latest, self.ground.wall()
        if self._latest < latest - SET_BACK_S:
            for who, scheduled in self._known.items():
                scheduled.stored = 0
                self._due.set(who, self._latest)

    # -- what is deployed ------------------------------------------------------------------------------------------

    async def _take_changes(self) -> None:
        while self._dirty:
            key = self._dirty.pop()
            app = self._app(key)
            present = {} if app is None else {one.who: one for one in await self._methods(key, app)}
            for who in self._of_app.pop(key, set()) - present.keys():
                self._due.clear(who)
                await self._withdraw(self._known.pop(who))
            if app is None or not present:
                continue
            self._of_app[key] = set(present)
            for who, method in present.items():
                await self._take(who, method, app)

    async def _take(self, who: str, method: ScheduledMethod, app: AppRecord) -> None:
        before = self._known.get(who)
        now = self._known[who] = _Scheduled(method=method, app=app)
        if before is not None and is_tick(method.schedule, who, before.stored):
            now.stored = before.stored
        elif before is not None:
            await self._withdraw(before)
        self._due.set(who, self.ground.wall())

    async def _methods(self, key: str, app: AppRecord) -> list[ScheduledMethod]:
        versions = await self.versions.of_app(key, app.functions.values())
        return list(scheduled_methods(app, versions.get))

    def _app(self, key: str) -> AppRecord | None:
        entry = self.mirror.get(key)
        try:
            return None if entry is None else _apps.decode(entry.value)
        except msgspec.DecodeError as error:
            log.warning("an app's record cannot be read", key=key, error=str(error))
            return None

    async def _withdraw(self, gone: _Scheduled) -> None:
        """Cancel the job that stands ahead of a tick that does not come. Whoever would run it looks again."""
        ground, at, tenant = self.ground, self.ground.wall(), gone.method.version.tenant
        if gone.stored <= at:
            return
        found = await ground.jobs.read(tenant, tick_job_id(ground.region, tenant, gone.method.who, gone.stored))
        if found is not None and found.job.state is JobState.QUEUED and not found.job.attempts:
            with contextlib.suppress(WrongRevision):  # it was cancelled meanwhile
                await ground.jobs.update(withdrawn(found.job, at), found.revision)
                flow = subjects.job_flow(ground.region, found.job.function, tenant, found.job.priority)
                ground.publish(flow, JobNote(found.job.id))  # its home expects it no more

    # -- ticks -----------------------------------------------------------------------------------------------------

    async def _store_due(self) -> None:
        due = self._due.due(self.ground.wall())
        for first in range(0, len(due), AT_A_TIME):
            async with asyncio.TaskGroup() as group:
                for who in due[first : first + AT_A_TIME]:
                    group.create_task(self._store(who))

    async def _store(self, who: str) -> None:
        scheduled, at = self._known[who], self.ground.wall()
        plan = plan_ticks(scheduled.method, scheduled.app, at)
        self._due.set(who, plan.look_again_at)
        try:
            for tick in plan.ticks:
                if tick > scheduled.stored:
                    await self._store_tick(scheduled.method, tick, at)
                    scheduled.stored = tick
        except PilotlightError as error:
            log.warning("the job of a tick is stored later", function=who, error=str(error))
            self._due.set(who, at + AGAIN_S)

    async def _store_tick(self, method: ScheduledMethod, tick: int, at: float) -> None:
        ground, wanted = self.ground, tick_job(self.ground.region, method, tick, at)
        stored = await ground.jobs.create(wanted)
        job = stored.job
        if (again := restored(job)) is not None:
            await ground.jobs.update(again, stored.revision)
            job = again
        if job.state is JobState.QUEUED:
            flow = subjects.job_flow(ground.region, job.function, job.tenant, job.priority)
            ground.publish(flow, note_of(job, at))
        if job is wanted or again is not None:
            self._counts["ahead" if tick > at else "late"] += 1
