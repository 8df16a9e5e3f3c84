"""What is promised of every history, as facts that the world writes down and checks on them.

P1  A grant is used at most once, and none after a higher one; it starts at most once, and a call at most once more than
    its code raised; idempotent ones at most thrice, and so do their streams, which are resumable: no chunk is lost, and
    none comes twice.
P2  In particular no call that is not idempotent starts twice, whatever homes come and go.
P3  Every call of a living gateway ends exactly once, with an answer or an error, by its deadline and a margin.
P4  A call that never started does not fail with container_died, unless a message of it was lost, or its agent died and
    was away or stood still for long.
    It runs elsewhere: no call fails for want of a place, and after the storm every call is answered.
P5  No container runs more calls than it has slots.
P6  When all is quiet, no slot is taken, nothing is queued, and the books of all parts are in order.
P7  What was not granted survives its home: it fails by its own deadline or by its caller's will, or not at all.
P8  Every answered call is billed once.
P9  What an agent was told to cancel before it started never starts there.
P10 Of a tenant's limits no more is let in than its rate allows, whoever is their home; where nothing goes wrong no
    more calls run than it may have, and what has ended is free at once.
P11 A job that is not idempotent starts at most once more than its code raised; an idempotent one twice more.
P12 A job's start stands in its record before the job is sent to an agent.
P13 A stored job ends once: with the one answer of the run that its record names, or cancelled, expired or failed.
P14 No job that was accepted is lost, whichever gateways are killed: when all is quiet, each has ended. What is
    submitted twice under one key is one job.
P16 Where nothing but links breaks, no call that was sent is lost, and no part of a stream.
P15 Where nothing goes wrong, and after the storm, a job ends as its code does.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.call_messages import Chunk, ChunkGroup, Ended, Refusal, Refused, Run, Started
from pilotlight_core.model.records.jobs import MAX_RERUNS, JobFailureReason, JobRecord, JobState
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.limits.limit_policy import LimitPolicy

MARGIN = 1.0
"""Seconds beyond its deadline, or beyond its gateway's awakening, by which a call must have ended."""
MAX_STARTS = 3
LATE_S = 0.8
"""By so much later than it was decided an answer may come."""
HELD_S = 0.1
"""For so long after its answer a home beside its origin may count a call's slot."""


class Broken(BaseException):
    """A promise was broken. No handler of errors in the drivers may keep it to itself."""

    def __init__(self, promise: str, what: str) -> None:
        super().__init__(f"{promise}: {what}")
        self.promise = promise


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What a call is and will do, as the world has drawn it. Instants are the world's."""

    gateway: str
    deadline: float
    seconds: float
    raises: int = 0
    retries: int = 0
    chunks: int = 0
    idempotent: bool = False
    deadly: bool = False
    """It takes its container along, every time."""
    must_succeed: bool = False


class JobPromises:
    """The facts of one history's jobs. The input of a job is its name, by which its client knows it."""

    def __init__(self, promises: Promises) -> None:
        self._promises = promises
        self.fates: dict[str, Fate] = {}
        """By name."""
        self.records: dict[str, JobRecord] = {}
        """As they stand, by id."""
        self.open: set[str] = set()
        """Ids of those that have not ended."""
        self.accepted: dict[str, str] = {}
        """Name -> id."""
        self.states: Counter[str] = Counter()
        """Of those that have ended."""
        self._names: dict[str, str] = {}
        """Run -> the name of its job."""
        self._runs: defaultdict[str, list[str]] = defaultdict(list)
        self._noted: set[tuple[str, int]] = set()

    def submitted(self, name: str, fate: Fate) -> None:
        """A client wants a job."""
        self.fates[name] = fate

    def was_accepted(self, name: str, job: str) -> None:
        """A client was told that its job is stored."""
        _keep("P14", job in self.records, f"{name} was accepted as {job}, and is not stored")
        _keep("P14", self.accepted.setdefault(name, job) == job, f"{name} is two jobs: {job} and {self.accepted[name]}")

    def called(self, run: str, data: bytes) -> None:
        """A job has become a call."""
        name = self._names[run] = msgspec.msgpack.decode(data, type=str)
        fate, raised = self.fates[name], self._raised(name)
        self._promises.fates[run] = replace(fate, raises=int(raised < fate.raises), retries=0, idempotent=False)
        self._runs[name].append(run)

    def sent(self, run: Run) -> None:
        """A call is on its way to an agent."""
        if run.call_id in self._names:
            noted = (run.call_id, run.grant_number) in self._noted
            _keep("P12", noted, f"{self._names[run.call_id]} was sent as {run.call_id}, and that was not noted")

    def started(self, run: str) -> None:
        """A call has started, which may be a job's."""
        if (name := self._names.get(run)) is not None:
            most = 1 + self._raised(name) + MAX_RERUNS * self.fates[name].idempotent
            starts = sum(self._promises.starts[one] for one in self._runs[name])
            _keep("P11", starts <= most, f"{name} started {starts} times, {most} allowed")

    def written(self, before: JobRecord | None, job: JobRecord) -> None:
        """A record was written."""
        self.records[job.id] = job
        if before is not None:
            _keep("P13", not before.state.terminal, f"{job.id} was written as {job.state} after its end")
        if job.state is JobState.RUNNING:
            self._noted.add((job.run, job.grant_number))
        if not job.state.terminal:
            self.open.add(job.id)
            return
        self.open.discard(job.id)
        self.states[job.state] += 1
        if job.state is JobState.SUCCEEDED:
            _keep("P13", before is not None and before.run == job.run, f"{job.id} has the answer of another run")
            _keep("P13", job.output == answer_of(job.run), f"{job.id} has another answer than {job.run} gave")
            self._promises.is_billed(job.run, job.spent.ns if job.spent is not None else 0)
        elif self._promises.is_calm or self._fate_of(job).must_succeed:
            self._check_failure(job)

    def check_quiet(self) -> None:
        """Every job has ended."""
        _keep("P14", not self.open, f"{sorted(self.open)} have not ended")

    def _check_failure(self, job: JobRecord) -> None:
        fate = self._fate_of(job)
        raised = job.reason is JobFailureReason.RAISED and fate.raises
        late = job.ended_at >= job.expires_at and not fate.must_succeed
        deadly = fate.deadly or self._promises.has_deadly
        _keep("P15", raised or late or deadly or job.cancel or job.state is JobState.CANCELLED, f"{job} has failed")

    def _fate_of(self, job: JobRecord) -> Fate:
        return self.fates[msgspec.msgpack.decode(job.input, type=str)]

    def _raised(self, name: str) -> int:
        return sum(self._promises.raised[run] for run in self._runs[name])


def answer_of(call: str) -> bytes:
    """What a call returns, unless it raises."""
    return msgspec.msgpack.encode(call)


class Promises:
    """The facts of one history."""

    def __init__(self) -> None:
        self.fates: dict[str, Fate] = {}
        self.open: dict[str, Fate] = {}
        """Calls that have not ended."""
        self.jobs = JobPromises(self)
        self.is_calm = False
        """Whether nothing goes wrong in this history."""
        self.outcomes: Counter[str] = Counter()
        self.most_at_once = math.inf
        """Calls of one tenant that may run, where nothing goes wrong; else those of the cut off are nobody's."""
        self.starts: Counter[str] = Counter()
        self.raised: Counter[str] = Counter()
        self.excused: set[str] = set()
        """Calls that lost a message between origin and agent, or their agent: nobody can know whether they started."""
        self._grants: set[tuple[str, int, str]] = set()
        self._granted: set[str] = set()
        self._cancelled: set[tuple[str, str]] = set()
        self._running: Counter[str] = Counter()
        self._bills: dict[int, str] = {}
        self._chunks: Counter[str] = Counter()
        self._let_in: defaultdict[str, list[float]] = defaultdict(list)
        self._sent: set[tuple[str, int]] = set()
        self._highest: Counter[str] = Counter()
        """Call -> the highest of its grants that was used."""
        self._ended_at: dict[str, float] = {}
        self._answered_at: dict[str, float] = {}
        self._held: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)

    # -- facts ---------------------------------------------------------------------------------------------------

    def submitted(self, call: str, fate: Fate) -> None:
        self.fates[call] = self.open[call] = fate

    def gateway_died(self, gateway: str) -> None:
        """Its callers have lost their connections: nothing is owed to them."""
        self.open = {call: fate for call, fate in self.open.items() if fate.gateway != gateway}

    def lost(self, message: Any) -> None:
        """The bus dropped a message."""
        if isinstance(message, Run | Refused | Started | Chunk | Ended):
            self.excused.add(message.call_id)
        elif isinstance(message, ChunkGroup):
            self.excused |= {row.call_id for row in message.rows}

    def stands_still(self, message: Any) -> None:
        """A message has come to somebody who is stopped: a death of before may be told and believed meanwhile."""
        if isinstance(message, Run):
            self.excused.add(message.call_id)

    def started(self, run: Run, agent: str, slots: int) -> None:
        call, fate = run.call_id, self.fates[run.call_id]
        self.starts[call] += 1
        attempts = self.starts[call] - self.raised[call]
        most = fate.retries + (MAX_STARTS if fate.idempotent else 1)
        _keep(
            "P1",
            (call, run.grant_number, agent) not in self._grants,
            f"grant {run.grant_number} of {call} started twice",
        )
        _keep("P2", fate.idempotent or attempts <= 1, f"{call} is not idempotent and started twice")
        _keep("P1", self.starts[call] <= most, f"{call} started {self.starts[call]} times, {most} allowed")
        _keep("P9", (call, agent) not in self._cancelled, f"{call} started after it was cancelled")
        self._grants.add((call, run.grant_number, agent))
        self._granted.add(call)
        self._running[run.container] += 1
        _keep("P5", self._running[run.container] <= slots, f"{run.container} runs more than {slots} calls")
        self.jobs.started(call)

    def turned_away(self, call: str, reason: Refusal, is_calm: bool) -> None:
        _keep("P4", not is_calm or reason is not Refusal.NO_SLOT, f"{call} was sent to a full container")

    def sent(self, message: Any) -> None:
        """A message is on its way."""
        if isinstance(message, Run):
            before = self._highest[message.call_id]
            _keep(
                "P1",
                message.grant_number > before,
                f"grant {message.grant_number} of {message.call_id} was used after {before}",
            )
            self.jobs.sent(message)
            self._highest[message.call_id] = message.grant_number
            self._sent.add((message.call_id, message.grant_number))

    def is_reserved(self, call: str, number: int, now: float) -> None:
        """What was sent to an agent is heard of from that; of another grant nobody but its origin knows."""
        late = now - self._ended_at.get(call, math.inf) if (call, number) not in self._sent else 0.0
        _keep("P6", late < LATE_S, f"{call} has ended {late:.1f} s ago, and its grant is still counted")

    def is_held(self, call: str, gateway: str, now: float) -> None:
        """A home counts the call's slot. Its own callers' calls it has heard of in order with credits."""
        fate = self.fates.get(call)
        late = now - self._answered_at.get(call, math.inf) if fate is not None and fate.gateway == gateway else 0.0
        _keep("P6", late < HELD_S, f"{call} was answered {late:.1f} s ago, and its slot is still counted")

    def knows_home(self, call: str, does: bool) -> None:
        _keep("P7", does, f"{call} waits, and was not enqueued at its new home")

    def let_in(self, tenant: str, at: float, policy: LimitPolicy | None) -> None:
        came = self._let_in[tenant]
        came.append(at)
        assert policy is not None
        limits = policy.scopes[0].limits
        assert limits.requests_per_s is not None
        for n, since in enumerate(reversed(came)):
            most = limits.request_burst + limits.requests_per_s * (at - since + LATE_S)
            _keep("P10", n + 1 <= most + 1, f"{n + 1} calls of {tenant} were let in within {at - since:.1f} s")

    def holds(self, tenant: str, permit: tuple[str, int]) -> None:
        self._held[tenant].add(permit)
        _keep("P10", len(self._held[tenant]) <= self.most_at_once, f"{len(self._held[tenant])} calls of {tenant} run")

    def gave_back(self, tenant: str, permit: tuple[str, int]) -> None:
        self._held[tenant].discard(permit)

    def is_free(self, tenant: str, permit: tuple[str, int], free: bool) -> None:
        _keep("P10", free, f"{permit} of {tenant} is over, and still counted")

    def stopped(self, container: str) -> None:
        self._running[container] -= 1

    def cancel_came(self, call: str, agent: str) -> None:
        self._cancelled.add((call, agent))

    def billed(self, call: str, bill: int) -> None:
        _keep("P8", bill not in self._bills, f"bill {bill} was written twice")
        self._bills[bill] = call

    def relayed(self, call: str, seq: int) -> None:
        _keep("P1", seq == self._chunks[call] + 1, f"{call}: chunk {seq} came after {self._chunks[call]}")
        self._chunks[call] = seq

    def answered(self, call: str, result: CallResult, at: float, woke_at: float) -> None:
        fate = self._ended(call, at, woke_at)
        self.outcomes["ok"] += 1
        self._answered_at[call] = at
        _keep("P8", result.output == answer_of(call), f"{call} was answered as another call")
        self.is_billed(call, result.spent.ns if result.spent is not None else 0)
        _keep("P3", self._chunks[call] == fate.chunks, f"{call} was answered without all of its chunks")

    def is_billed(self, call: str, bill: int) -> None:
        """A call was answered with a bill."""
        _keep("P8", self._bills.pop(bill, None) == call, f"{call} was answered with bill {bill}, which is not its own")

    def _ended(self, call: str, at: float, woke_at: float) -> Fate:
        fate = self.open.pop(call, None)
        _keep("P3", fate is not None, f"{call} ended twice")
        self._ended_at[call] = at
        assert fate is not None
        _keep("P3", at <= max(fate.deadline, woke_at) + MARGIN, f"{call} ended {at - fate.deadline:.1f} s too late")
        return fate

    def failed(self, call: str, error: PilotlightError, at: float, woke_at: float) -> None:
        fate = self._ended(call, at, woke_at)
        code = error.wire_code
        self.outcomes[code] += 1
        never = not self.starts[call]
        _keep("P4", code != "container_died" or not never or call in self.excused, f"{call} never started, and died")
        lost = self.is_calm and code == "container_died" and not self.has_deadly
        _keep("P16", not lost, f"{call} died where nothing but links broke: {error.detail}")
        _keep("P4", "in turn" not in error.detail, f"{call} found no place: {error.detail}")
        _keep("P7", not never or code in ALLOWED or call in self.excused, f"{call} never started and failed: {code}")
        raised = code == "function_raised" and fate.raises > fate.retries
        expected = not fate.must_succeed or raised or (code == "breaker_open" and self.has_deadly)
        _keep("P4", expected, f"{call} was sent after the storm and failed: {code}: {error.detail}")

    @property
    def has_deadly(self) -> bool:
        """Whether calls take their containers along: then the breaker of their version may be open."""
        return any(fate.deadly for fate in self.fates.values())

    def check_open(self, now: float, woke_at: dict[str, float]) -> None:
        """No call is overdue."""
        for call, fate in self.open.items():
            late = now - max(fate.deadline, woke_at.get(fate.gateway, 0.0))
            _keep("P3", late <= 2 * MARGIN, f"{call} hangs {late:.1f} s after its deadline")


ALLOWED = ("deadline_exceeded", "cancelled", "queue_full", "no_capacity", "breaker_open")
"""How a call that was never started may fail: by its own time or will, or refused at once when it came."""


def _keep(promise: str, held: object, what: str) -> None:
    if not held:
        raise Broken(promise, what)
