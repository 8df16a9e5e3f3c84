"""The attempts of one call: how many, what they took, and where the time went."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.call_messages import Ended, Grant, Outcome, Spent
from pilotlight_core.model.messages.scheduling import Settle
from pilotlight_core.model.messages.usage_facts import Fault, tokens_of
from pilotlight_core.model.spec import FunctionSpec, max_units_of
from pilotlight_core.model.tracing.kept_call import LONGEST_REASON, MOST_ATTEMPTS, BatchMates, KeptAttempt
from pilotlight_core.model.units import sold_units
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.limits.call_usage import is_plausible

LOST = "lost"
"""How an attempt ended of which nobody says it."""


class Attempts:
    """The starts of one call and their usage, and its stages in milliseconds.

    Only instants of this process are subtracted; the durations that the agent reports are cut to fit. So the stages
    sum to the time between the first and the last mark, over all attempts.
    """

    __slots__ = (
        "_last", "batch", "batch_wait", "began_at", "cold_start", "cost", "execute", "grant", "lost_starts", "metered",
        "nth", "queue", "spent", "spent_before", "start", "starts", "tokens", "trail", "transport",
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
        self.metered: Spent | None = None
        """What the last start took, whoever pays."""
        self.spent_before: tuple[Spent, ...] = ()
        """Of starts on slices of other kinds."""
        self.cold_start: dict[str, float] | None = None
        """The timeline of the container's start that the call waited for."""
        self.grant: Grant | None = None
        """The last one."""
        self.nth = self.batch = 0
        """Of the last start, as its agent counts calls and batches of the container."""
        self.trail: tuple[KeptAttempt, ...] = ()
        """The attempts that did not end well."""
        self.began_at = at
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
        self.grant = grant
        self.nth = self.batch = 0
        start = min(grant.start_ms, elapsed)
        self.start += start
        self.queue += elapsed - start
        if grant.start_ms:
            self.cold_start = grant.timeline

    def refused(self, grant: Grant, reason: str, at: float) -> None:
        """The attempt of this grant never started."""
        self.transport += self._lap(at)
        self._note(grant, reason, started=False)

    def lost(self, grant: Grant | None, reason: str, at: float) -> None:
        """The attempt of this grant counts as started, and neither its duration nor its cost is known."""
        self.execute += self._lap(at)
        self.starts += 1
        self.lost_starts += 1
        if grant is not None:
            self._note(grant, LOST, reason)

    def ended(self, grant: Grant, ended: Ended, at: float) -> tuple[Ended, Settle]:
        """The start of this grant ended: returns its end, without a metered time that cannot be, and its settlement."""
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
        over = settlement_of(grant.node, ended)
        self.cost += over.cost or 0.0
        self.metered = ended.spent
        self.nth, self.batch = ended.nth, ended.batch
        if ended.spent is not None and ended.spent.fault is not Fault.PLATFORM:
            self._spend(ended.spent)
        if ended.units:
            self.tokens += tokens_of(ended.units)
        if ended.outcome is not Outcome.OK:
            self._note(grant, ended.outcome.value, ended.reason, mates=ended.mates)
        return ended, over

    def _note(
        self, grant: Grant, outcome: str, reason: str = "", *, started: bool = True, mates: BatchMates = ()
    ) -> None:
        """Note for whoever asks why: this attempt has not ended well."""
        if len(self.trail) < MOST_ATTEMPTS - 1:
            one = KeptAttempt(
                container=grant.container,
                node=grant.node,
                outcome=outcome,
                reason=reason[:LONGEST_REASON],
                started=started,
                ahead=grant.ahead,
                queue=self.queue - sum([one.queue for one in self.trail]),
                start=self.start - sum([one.start for one in self.trail]),
                transport=self.transport - sum([one.transport for one in self.trail]),
                batch_wait=self.batch_wait - sum([one.batch_wait for one in self.trail]),
                execute=self.execute - sum([one.execute for one in self.trail]),
                mates=mates,
            )
            self.trail = (*self.trail, one)

    def stages(self, gateway_ms: float) -> dict[str, float]:
        """Milliseconds by stage, of which `gateway_ms` were before the first."""
        return {
            "gateway": gateway_ms,
            "queue": self.queue,
            "start": self.start,
            "transport": self.transport,
            "batch_wait": self.batch_wait,
            "execute": self.execute,
        }

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

    def result(self, ended: Ended, grant: Grant, gateway_ms: float, spec: FunctionSpec) -> CallResult:
        """The result of the call, of which the start of this `grant` has `ended` well; `gateway_ms` were before the
        first.
        """
        return CallResult(
            output=ended.output,
            answer_size=ended.answer_size,
            spent=self.spent,
            metered=self.metered,
            spent_before=self.spent_before,
            stages=self.stages(gateway_ms),
            cold_start=self.cold_start,
            attempts=self.starts,
            container=grant.container,
            nth=self.nth,
            batch=self.batch,
            units=ended.units,
            sold=sold_units(ended.units, max_units_of(spec)) if ended.units else None,
            grant=grant,
            mates=ended.mates,
            trail=self.trail,
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
        container=last.grant.container if last.grant is not None else "",
        nth=last.nth,
        batch=last.batch,
        grant=last.grant,
        trail=tuple([one for each in attempts for one in each.trail])[:MOST_ATTEMPTS],
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
