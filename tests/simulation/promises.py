"""What is promised of every history, as facts that the world writes down and checks on them.

P1  A grant is used at most once, and none after a higher one; it starts at most once, and a call at most once more than
    its code raised; idempotent ones at most thrice.
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
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.agent_messages import Chunk, Ended, Refusal, Refused, Run, Started
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.limits.limit_policy import LimitPolicy

MARGIN = 1.0
"""Seconds beyond its deadline, or beyond its gateway's awakening, by which a call must have ended."""
MAX_STARTS = 3
LATE_S = 0.8
"""By so much later than it was decided an answer may come."""


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


class Promises:
    """The facts of one history."""

    def __init__(self) -> None:
        self.fates: dict[str, Fate] = {}
        self.open: dict[str, Fate] = {}
        """Calls that have not ended."""
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

    def turned_away(self, call: str, reason: Refusal, is_calm: bool) -> None:
        _keep("P4", not is_calm or reason is not Refusal.NO_SLOT, f"{call} was sent to a full container")

    def sent(self, message: Any) -> None:
        """A message is on its way."""
        if isinstance(message, Run):
            before = self._highest[message.call]
            _keep("P1", message.grant > before, f"grant {message.grant} of {message.call} was used after {before}")
            self._highest[message.call] = message.grant
            self._sent.add((message.call, message.grant))

    def is_reserved(self, call: str, number: int, now: float) -> None:
        """What was sent to an agent is heard of from that; of another grant nobody but its origin knows."""
        late = now - self._ended_at.get(call, math.inf) if (call, number) not in self._sent else 0.0
        _keep("P6", late < LATE_S, f"{call} has ended {late:.1f} s ago, and its grant is still counted")

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
        bill = result.spent.ns if result.spent is not None else 0
        _keep("P8", self._bills.pop(bill, None) == call, f"{call} was answered with bill {bill}, which is not its own")
        _keep("P3", self._chunks[call] == fate.chunks, f"{call} was answered without all of its chunks")

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
        _keep("P4", "in turn" not in error.detail, f"{call} found no place: {error.detail}")
        _keep("P7", not never or code in ALLOWED or call in self.excused, f"{call} never started and failed: {code}")
        deadly = any(fate.deadly for fate in self.fates.values())  # whose containers were lost, its breaker may be open
        raised = code == "function_raised" and fate.raises > fate.retries
        expected = not fate.must_succeed or raised or (code == "breaker_open" and deadly)
        _keep("P4", expected, f"{call} was sent after the storm and failed: {code}: {error.detail}")

    def check_open(self, now: float, woke_at: dict[str, float]) -> None:
        """No call is overdue."""
        for call, fate in self.open.items():
            late = now - max(fate.deadline, woke_at.get(fate.gateway, 0.0))
            _keep("P3", late <= 2 * MARGIN, f"{call} hangs {late:.1f} s after its deadline")


ALLOWED = ("deadline_exceeded", "cancelled", "queue_full", "no_capacity", "breaker_open")
"""How a call that was never started may fail: by its own time or will, or refused at once when it came."""


def _keep(promise: str, held: bool, what: str) -> None:
    if not held:
        raise Broken(promise, what)
