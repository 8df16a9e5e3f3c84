"""One flow of the work queue as its home has read it: jobs that are due or wait, and messages that are done. Pure.

A job is *taken* when its home begins to run it, *put off* when it waits until an instant, and *removed* when it is
over. A message is done when all jobs that it names are over. Done messages are removed up to the first that is not
done, those behind it one by one, so that one job for next week does not keep all after it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from pilotlight_core.model.messages.job_messages import JobNote
from pilotlight_core.model.timers import Timers

READ_AHEAD = 10_000
"""Jobs of one flow that its home reads; more when these are over."""
MOST_PLANNED = 1_000
"""Jobs of one flow that are counted as planned; more of them ask for no more containers."""


@dataclass(frozen=True, kw_only=True)
class PlannedJobs:
    """Jobs whose time is known and has not come."""

    due_at: float
    """When the first of them may begin."""
    jobs: int
    """At least so many may begin about then."""
    version: str = ""
    """The id of the version that they run; "": what is deployed by then."""

    def joined(self, other: PlannedJobs, within_s: float) -> PlannedJobs:
        """These and those of another flow, of which none counts that may begin more than `within_s` seconds later."""
        first, second = sorted((self, other), key=lambda each: each.due_at)
        is_near = second.due_at <= first.due_at + within_s and second.version == first.version
        return replace(first, jobs=first.jobs + (second.jobs if is_near else 0))


class _Job:
    __slots__ = ("order", "put_off", "run_at", "seqs", "taken", "version")

    def __init__(self, order: int, run_at: float, version: str) -> None:
        self.order = order
        self.run_at = run_at
        self.version = version
        self.seqs: list[int] = []
        """The messages that name it: several, if it was published again."""
        self.taken = False
        self.put_off = False


class JobFlow:
    """The jobs of a flow that are not over. Instants are unix seconds."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.next = 1
        """Sequence of the next page."""
        self._jobs: dict[str, _Job] = {}
        self._ready: deque[str] = deque()
        self._later = Timers[tuple[int, str]]()
        """Order and name of those put off."""
        self._open: dict[int, int] = {}
        """Message -> how many of its jobs are not over, in the stream's order."""
        self._done: set[int] = set()
        """Done messages behind one that is not."""
        self._purge = 0
        """All messages below this sequence are done; 0: nothing to purge."""
        self.function = ""
        """`tenant:app.function`; "": no note has said it."""
        self._planned: list[tuple[float, str]] = []
        """A heap of when jobs may begin that wait for it, and their names; some may be gone."""
        self._order = 0
        self._orders: list[int] = []
        """Of all jobs, ascending."""
        self.taken = 0

    def __len__(self) -> int:
        """Jobs that are not over."""
        return len(self._jobs)

    @property
    def wants(self) -> bool:
        return len(self._jobs) < READ_AHEAD

    def add(self, seq: int, notes: Iterable[JobNote]) -> None:
        """Add the message at `seq`."""
        self.next = max(self.next, seq + 1)
        names = {note.id: note for note in notes}
        self._open[seq] = len(names)
        for note in names.values():
            job = self._jobs.get(note.id)
            if job is None:
                job = self._jobs[note.id] = _Job(self._next_order(), note.run_at, note.version)
                self._queue(note.id, job)
                self._plan(note)
            elif job.put_off and not note.run_at:
                self._wake(note.id, job)
            job.seqs.append(seq)
        if not names:
            self._message_done(seq)

    def take(self, at: float) -> str | None:
        """The next job that is due at `at`, if any."""
        self._ready_due(at)
        while self._ready:
            name = self._ready.popleft()
            job = self._jobs.get(name)
            if job is not None and not job.taken and not job.put_off:
                job.taken = True
                self.taken += 1
                return name
        return None

    def backlog(self, at: float) -> int:
        """The jobs that are due at `at` and not taken."""
        self._ready_due(at)
        return len(self._ready)

    def due_at(self) -> float | None:
        """When the next job that is put off is due; None: none is put off."""
        return self._later.next()

    def planned(self, at: float, before_at: float, within_s: float) -> PlannedJobs | None:
        """The first job that waits for its time, with those of its version due within `within_s` seconds of it.

        None if it is due by `at`, or after `before_at`. Not counted are jobs that are looked at again later for another
        reason: a limit, a retry, a run elsewhere.
        """
        heap = self._planned
        while heap and (heap[0][0] <= at or not self._is_planned(*heap[0])):
            heappop(heap)
        if not heap or heap[0][0] > before_at:
            return None
        first_at, first = heap[0]
        version, jobs, ahead = self._jobs[first].version, 0, [0]
        while ahead and jobs < MOST_PLANNED:
            place = ahead.pop()
            if place < len(heap) and heap[place][0] <= first_at + within_s:  # none below it is due before it
                name = heap[place][1]
                jobs += self._is_planned(*heap[place]) and self._jobs[name].version == version
                ahead += (2 * place + 1, 2 * place + 2)
        return PlannedJobs(due_at=first_at, jobs=jobs, version=version)

    def put_off(self, name: str, due_at: float) -> None:
        """Let a taken job wait until `due_at`."""
        job = self._give(name)
        if job is not None:
            self._forget_order(job)
            job.order, job.run_at = self._next_order(), due_at
            self._queue(name, job)

    def give_back(self, name: str) -> None:
        """Make a taken job the next one again."""
        if self._give(name) is not None:
            self._ready.appendleft(name)

    def remove(self, name: str) -> None:
        """Remove a taken job that is over."""
        job = self._give(name)
        if job is None:
            return
        del self._jobs[name]
        self._forget_order(job)
        for seq in job.seqs:
            self._open[seq] -= 1
            if not self._open[seq]:
                self._message_done(seq)

    def position(self, name: str) -> int | None:
        """How many jobs are before it; None: it is unknown here."""
        job = self._jobs.get(name)
        return bisect_left(self._orders, job.order) if job is not None else None

    def purge_below(self) -> int:
        """The sequence below which all messages are done; 0: none since the last call."""
        below, self._purge = self._purge, 0
        return below

    def strays(self) -> list[int]:
        """Done messages behind one that is not, to be removed one by one. Returned once."""
        strays = sorted(self._done)
        self._done.clear()
        return strays

    def _ready_due(self, at: float) -> None:
        for _, name in self._later.due(at):
            self._jobs[name].put_off = False
            self._ready.append(name)

    def _next_order(self) -> int:
        self._order += 1
        self._orders.append(self._order)
        return self._order

    def _forget_order(self, job: _Job) -> None:
        del self._orders[bisect_left(self._orders, job.order)]

    def _plan(self, note: JobNote) -> None:
        if note.run_at and note.function:
            self.function = note.function
            heappush(self._planned, (note.run_at, note.id))

    def _is_planned(self, run_at: float, name: str) -> bool:
        job = self._jobs.get(name)
        return job is not None and job.put_off and job.run_at == run_at

    def _wake(self, name: str, job: _Job) -> None:
        self._later.clear((job.order, name))
        job.put_off = False
        self._ready.append(name)

    def _queue(self, name: str, job: _Job) -> None:
        if job.run_at:
            job.put_off = True
            self._later.set((job.order, name), job.run_at)
        else:
            self._ready.append(name)

    def _give(self, name: str) -> _Job | None:
        job = self._jobs.get(name)
        if job is None or not job.taken:
            return None
        job.taken = False
        self.taken -= 1
        return job

    def _message_done(self, seq: int) -> None:
        del self._open[seq]
        first = next(iter(self._open), self.next)
        if seq < first:
            self._purge = first
            self._done = {one for one in self._done if one > first}
        else:
            self._done.add(seq)
