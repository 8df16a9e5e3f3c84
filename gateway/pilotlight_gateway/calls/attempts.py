"""The attempts of one call: how many, what they took, and where the time went."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.call_messages import Ended, Grant, Spent
from pilotlight_core.model.messages.scheduling import Settle
from pilotlight_core.model.messages.usage_facts import Fault, tokens_of
from pilotlight_core.model.spec import FunctionSpec, max_units_of
from pilotlight_core.model.units import sold_units
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.limits.call_usage import is_plausible


class Attempts:
    """The starts of one call and their usage, and its stages in milliseconds.

    Only instants of this process are subtracted; the durations that the agent reports are cut to fit. So the stages
    sum to the time between the first and the last mark, over all attempts.
    """

    __slots__ = (
        "_last", "batch_wait", "cold_start", "container", "cost", "execute", "lost_starts", "queue", "spent",
        "spent_before", "start", "starts", "tokens", "transport",
    )  # fmt: skip

    def __init__(self, at: float) -> None:
        self.starts = 0
        self.lost_starts = 0
        """Starts without a reported cost."""
        self.cost = 0.0
        """GPU-milliseconds of the other starts."""
        self.tokens = 0
        self.spent: Spent | None = None
        """What the tenant pays of the last start, and of those before on slices of its kind."""
        self.spent_before: tuple[Spent, ...] = ()
        """Of starts on slices of other kinds."""
        self.cold_start: dict[str, float] | None = None
        """The timeline of the container's start that the call waited for."""
        self.container = ""
        """The one that the last grant was for."""
        self._last = at
        self.queue = 0.0
        """Waiting for a container, and backoff between attempts."""
        self.start = 0.0
        """Waiting while a container started."""
        self.transport = 0.0
        """On the bus, at the agent, and in attempts that never started."""
        self.batch_wait = 0.0
        self.execute = 0.0

    def granted(self, grant: Grant, at: float) -> None:
        """The wait in the queue is over; for `start_ms` of it a container started."""
        elapsed = self._lap(at)
        self.container = grant.container
        start = min(grant.start_ms, elapsed)
        self.start += start
        self.queue += elapsed - start
        if grant.start_ms:
            self.cold_start = grant.timeline

    def refused(self, at: float) -> None:
        """An attempt never started."""
        self.transport += self._lap(at)

    def lost(self, at: float) -> None:
        """An attempt counts as started, and neither its duration nor its cost is known."""
        self.execute += self._lap(at)
        self.starts += 1
        self.lost_starts += 1

    def ended(self, node: str, ended: Ended, at: float) -> tuple[Ended, Settle]:
        """A start ended at `node`: returns its end, without a metered time that cannot be, and its settlement."""
        elapsed = self._lap(at)
        execute = min(ended.stages.execute_ms, elapsed)
        batch_wait = min(ended.stages.batch_wait_ms, elapsed - execute)
        self.execute += execute
        self.batch_wait += batch_wait
        self.transport += elapsed - execute - batch_wait
        told, ended = ended.spent, plausible(ended, elapsed)
        self.starts += 1
        # One without a container is of a call that its agent does not hold, and knows nothing of. Of one whose time
        # cannot be nobody knows what it cost: what was reserved for it stands until the ledger tells.
        self.lost_starts += not ended.container or ended.spent is not told
        over = settlement_of(node, ended)
        self.cost += over.cost or 0.0
        if ended.spent is not None and ended.spent.fault is not Fault.PLATFORM:
            self._spend(ended.spent)
        if ended.units:
            self.tokens += tokens_of(ended.units)
        return ended, over

    def _spend(self, now: Spent) -> None:
        if now.starts:  # a node knows of one alone
            now = msgspec.structs.replace(now, starts=())
        if self.spent is None or (together := _together(self.spent, now)) is not None:
            self.spent = now if self.spent is None else together
        else:
            self.spent_before, self.spent = (*self.spent_before, self.spent), now

    @property
    def all_spent(self) -> tuple[Spent, ...]:
        """What the tenant pays, the last start's last."""
        return self.spent_before if self.spent is None else (*self.spent_before, self.spent)

    def result(self, ended: Ended, container: str, gateway_ms: float, spec: FunctionSpec) -> CallResult:
        """The result of the call, of which the last start has `ended` well; `gateway_ms` were before the first."""
        return CallResult(
            output=ended.output,
            answer_size=ended.answer_size,
            spent=self.spent,
            spent_before=self.spent_before,
            stages={
                "gateway": gateway_ms,
                "queue": self.queue,
                "start": self.start,
                "transport": self.transport,
                "batch_wait": self.batch_wait,
                "execute": self.execute,
            },
            cold_start=self.cold_start,
            attempts=self.starts,
            container=container,
            units=ended.units,
            sold=sold_units(ended.units, max_units_of(spec)) if ended.units else None,
        )

    def since(self, at: float) -> float:
        """Milliseconds that no stage has yet."""
        return max(0.0, at - self._last) * 1000.0

    def _lap(self, at: float) -> float:
        elapsed = max(0.0, at - self._last) * 1000.0
        self._last = max(at, self._last)
        return elapsed


def course_of(attempts: list[Attempts], at: float, gateway_ms: float, *, sent: bool) -> CallResult:
    """How far a call came that has failed at `at`, as a result without an output; `sent`: into a container."""
    last = attempts[-1]
    rest = last.since(at)
    spent = [one for each in attempts for one in each.all_spent]
    return CallResult(
        output=b"",
        spent=spent[-1] if spent else None,
        spent_before=tuple(spent[:-1]),
        stages={
            "gateway": gateway_ms,
            "queue": sum([each.queue for each in attempts]) + (0.0 if sent else rest),
            "start": sum([each.start for each in attempts]),
            "transport": sum([each.transport for each in attempts]),
            "batch_wait": sum([each.batch_wait for each in attempts]),
            "execute": sum([each.execute for each in attempts]) + (rest if sent else 0.0),
        },
        cold_start=last.cold_start,
        attempts=sum([each.starts for each in attempts]),
        container=last.container,
    )


def plausible(ended: Ended, elapsed_ms: float) -> Ended:
    """The end of a call that took `elapsed_ms`, without a metered time that cannot be."""
    return ended if is_plausible(ended.spent, elapsed_ms) else msgspec.structs.replace(ended, spent=None)


def settlement_of(node: str, ended: Ended) -> Settle:
    """What the home must know of a start that has ended at `node`."""
    return Settle(
        call_id=ended.call_id,
        node=node,
        container=ended.container,
        grant_number=ended.grant_number,
        cost=ended.gpu_ms,
        frees=ended.frees,
        outcome=ended.outcome,
    )


def declined(grant: Grant) -> Settle:
    """What the home must know of a grant that is not used."""
    return Settle(call_id=grant.call_id, node=grant.node, container=grant.container, grant_number=grant.grant_number)


def _together(before: Spent, now: Spent) -> Spent | None:
    """The usage of two starts on slices of one kind; None: the kinds differ."""
    each = before.starts or (before.ns,)
    if not now.resumed:
        each = (*each, now.ns)
    together = msgspec.structs.replace(now, ns=before.ns + now.ns, starts=each, resumed=before.resumed)
    alike = msgspec.structs.replace(
        together, ns=before.ns, batch_size=before.batch_size, starts=before.starts
    ) == before  # fmt: skip
    return together if alike else None
