"""Judges each call as it ends, and keeps those that somebody will ask about. Nothing is made for any other.

    kept      error     it failed or was refused
              slow      it took longer than its function's p95_ms; where it names none, than what its calls have shown
                        to be unusual, or than 10 s
              asked     its caller's traceparent has the sampled flag
              sampled   one of so many (--trace-ratio), by the consistent rule of `trace_sampling`

A caller's traceparent is a wish: its flag, and a trace id chosen so that it is sampled, count within 10 a second of its
tenant. What is kept has names, times and codes, and never a payload or what a function has said.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import structs
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pilotlight_core.model.errors import PilotlightError, TooMuch, Unavailable
from pilotlight_core.model.limits import ReachedLimit
from pilotlight_core.model.messages.scheduling import TraceBatch
from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_core.model.tracing.kept_call import (
    LONGEST_REASON,
    MOST_ATTEMPTS,
    WELL,
    CallTrigger,
    KeptAttempt,
    KeptCall,
    KeptWhy,
)
from pilotlight_core.model.tracing.sampled_call import SampledSheet
from pilotlight_core.model.tracing.trace_context import SAMPLED_HERE, own_trace_id, parse_traceparent
from pilotlight_core.model.tracing.trace_sampling import TraceSampler
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_sink import FailedCall
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.traces.keep_rates import ASKED_PER_S, FAILED_PER_S, KeepRate
from pilotlight_gateway.traces.kept_calls import KeptCalls
from pilotlight_gateway.traces.open_sheet import OpenSheet
from pilotlight_gateway.traces.sampled_kinds import SampledKinds, is_ordinary

SLOW_MS = 10_000.0
"""Of a function of which nothing else is known."""
FORGET_AFTER_S = 60.0
"""How long is believed what was slow of a version."""
MOST_VERSIONS = 4_096
MOST_UNSENT = 4_096
"""Kept calls that wait for the next message to the duties."""
NO_COURSE = CallResult(output=b"")
NOT_KEPT_CODES = frozenset({"unauthenticated", "key_expired", "token_invalid", "token_expired", "no_access"})
"""Failures before it is known who asks."""

UnusualMs = Callable[[PreparedCall], float | None]
"""How long a function's calls take at most, but for the slowest; None: too few have ended."""


def nothing_known(_: PreparedCall) -> float | None:
    """An `UnusualMs` of a gateway that counts nothing."""
    return None


class RefusedAsk(NamedTuple):
    """A request for a call that is answered with an error."""

    tenant: str
    request_id: str
    call_id: str = ""
    """"": it had none yet."""
    route: str = ""
    called: VersionRecord | None = None


class TraceKeeper:
    """Keeps calls of this gateway: a `CallSink`. `clock`: monotonic seconds, `wall_ns`: unix nanoseconds."""

    def __init__(
        self,
        sampler: TraceSampler,
        *,
        gateway: str = "",
        failed_per_s: float = FAILED_PER_S,
        clock: Callable[[], float] = time.monotonic,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._sampler = sampler
        self._gateway = gateway
        self.unusual_ms: UnusualMs = nothing_known
        self._clock = clock
        self._wall_ns = wall_ns
        self._slow_ms: dict[str, float] = {}
        """By version."""
        self._forget_at = clock() + FORGET_AFTER_S
        self._asked, self._failed = KeepRate(ASKED_PER_S), KeepRate(failed_per_s)
        self._kinds = SampledKinds(sampler.threshold)
        self.calls = KeptCalls(gateway=gateway)
        self.tell_slow: Callable[[KeptCall], None] = lambda _: None
        """For the log."""
        self.note_exemplar: Callable[[KeptCall], None] = lambda _: None
        """For the histograms of durations."""
        self.note_sampled: Callable[[float, str, float], None] = lambda _ms, _id, _at: None
        """The same of an ordinary one: how long it took, its id, and the unix second in which it ended."""
        self._unsent: deque[KeptCall | OpenSheet] = deque()
        """A sheet stands where the first of its calls does that nobody has taken."""
        self._unsent_count = self._sampled_count = 0
        self._counts = Counter[KeptWhy]()
        self._left_out = Counter[str]()

    # -- what ends -----------------------------------------------------------------------------------------------

    def call_ended(self, call: PreparedCall, result: CallResult, stages: dict[str, float], total_ms: float) -> None:
        """A call has ended well."""
        # Of nearly every call this is all. A version of which nothing is known counts as slow, and is looked up.
        if total_ms < self._slow_ms.get(call.version.id, 0.0) and not call.traceparent and not call.link:
            return
        slow_ms = self._slow_of(call)
        # And of nearly every one that is kept this.
        if call.traceparent == SAMPLED_HERE and total_ms < slow_ms and is_ordinary(call, result, stages):
            self._hold_sampled(call, result, stages, total_ms, slow_ms)
            return
        if (why := self._why(call, slow=total_ms >= slow_ms)) is not None:
            self._keep(_ended_well(self._begin(call, why, total_ms, slow_ms), result, stages))

    def call_failed(self, failed: FailedCall) -> None:
        """A call has failed; one that was refused before it was a call comes to `refused`."""
        call, course = failed.call, failed.course or NO_COURSE
        if call is None or not self._takes_failure(call.tenant):
            return
        begun = self._begin(call, KeptWhy.ERROR, failed.total_ms, self._slow_of(call))
        self._keep(
            structs.replace(
                begun,
                code=failed.code,
                detail=failed.detail[:LONGEST_REASON],
                stages=course.stages,
                cold_start=course.cold_start,
                attempts=course.trail,
            )
        )

    def refused(self, ask: RefusedAsk, error: PilotlightError, total_ms: float) -> None:
        """A request for a call is answered with an error: what it says is added to what is known of its call."""
        tenant, code = ask.tenant, error.wire_code
        if not tenant or code in NOT_KEPT_CODES:
            return
        limits, retry_after = _limits_of(error), max(0.0, error.retry_after or 0.0)
        known = self.calls.find_whole(tenant, ask.call_id) if ask.call_id else None
        if known is not None:
            if known.code == code and (limits or retry_after):
                self._replace(known, structs.replace(known, limits=limits, retry_after=retry_after))
        elif self._takes_failure(tenant) and not (ask.call_id and self.calls.find(tenant, ask.call_id)):
            name, called = ask.call_id or ask.request_id, ask.called
            self._keep(
                KeptCall(
                    id=name,
                    trace_id=own_trace_id(name),
                    tenant=tenant,
                    function=f"{called.tenant}:{called.app}.{called.function}" if called is not None else "",
                    ref=called.ref if called is not None else "",
                    version=called.id if called is not None else "",
                    route=ask.route,
                    kept=KeptWhy.ERROR,
                    code=code,
                    detail=error.detail[:LONGEST_REASON] if isinstance(error, TooMuch | Unavailable) else "",
                    limits=limits,
                    retry_after=retry_after,
                    arrived_ns=self._wall_ns() - int(total_ms * 1e6),
                    total_ms=total_ms,
                    gateway=self._gateway,
                )
            )

    # -- what is told --------------------------------------------------------------------------------------------

    def take_unsent(self, most: int) -> TraceBatch | None:
        """What was kept since it was last taken, the oldest first; None: nothing. `most`: no less than of a sheet."""
        whole: list[KeptCall] = []
        sheets: list[SampledSheet] = []
        left = most
        while self._unsent and (count := _count_of(self._unsent[0])) <= left:
            left -= count
            first = self._unsent.popleft()
            if isinstance(first, OpenSheet):
                sheets.append(first.take())
            else:
                whole.append(first)
        self._unsent_count -= most - left
        return TraceBatch(gateway=self._gateway, calls=tuple(whole), sheets=tuple(sheets)) if left < most else None

    def forget_erased(self, key: str, record: object) -> None:
        """A record of the registry has changed: of a tenant that is erased nothing stays."""
        if key.startswith("tenant.") and isinstance(record, TenantRecord) and record.erased_at:
            self.calls.forget(record.name)
            self._unsent = deque([each for each in self._unsent if each.tenant != record.name])
            self._unsent_count = sum([_count_of(each) for each in self._unsent])

    def collect(self) -> Iterator[Metric]:
        """A `MetricSource`."""
        kept = CounterMetricFamily("pilotlight_calls_kept", "Calls that were kept to be told of.", labels=("kept",))
        for why in KeptWhy:
            kept.add_metric((why.value,), self._counts[why] + (self._sampled_count if why is KeptWhy.SAMPLED else 0))
        yield kept
        text = "Calls of which nothing more is told: beyond what is kept of a tenant, or sent to the duties."
        out = CounterMetricFamily("pilotlight_calls_not_kept", text, labels=("why",))
        for name, count in (("rate", self._left_out["rate"]), ("unsent", self._left_out["unsent"])):
            out.add_metric((name,), count)
        out.add_metric(("ring",), self.calls.dropped)
        yield out
        held = GaugeMetricFamily("pilotlight_kept_calls", "Kept calls that this gateway can tell of.")
        held.add_metric((), len(self.calls))
        yield held

    # -- inside --------------------------------------------------------------------------------------------------

    def _why(self, call: PreparedCall, *, slow: bool) -> KeptWhy | None:
        tenant, at = call.tenant, self._clock()
        if slow and self._failed.takes(tenant, at):
            return KeptWhy.SLOW
        if call.traceparent == SAMPLED_HERE:
            return KeptWhy.SAMPLED
        came = parse_traceparent(call.traceparent) if call.traceparent else None
        link = parse_traceparent(call.link) if call.link else None
        if (came is not None and came.sampled) or (link is not None and link.sampled):
            return KeptWhy.ASKED if self._asked.takes(tenant, at) else None
        if came is not None and self._sampler.takes(came.trace_id) and self._asked.takes(tenant, at):
            return KeptWhy.SAMPLED
        return None

    def _slow_of(self, call: PreparedCall) -> float:
        """Beyond how many milliseconds a call of its version is slow."""
        at = self._clock()
        if at >= self._forget_at or len(self._slow_ms) >= MOST_VERSIONS:
            self._slow_ms.clear()
            self._forget_at = at + FORGET_AFTER_S
        version = call.version
        if (known := self._slow_ms.get(version.id)) is None:
            known = version.spec.slo.p95_ms or self.unusual_ms(call) or SLOW_MS
            self._slow_ms[version.id] = known
        return known

    def _takes_failure(self, tenant: str) -> bool:
        taken = self._failed.takes(tenant, self._clock())
        self._left_out["rate"] += not taken
        return taken

    def _begin(self, call: PreparedCall, why: KeptWhy, total_ms: float, slow_ms: float) -> KeptCall:
        """What is known of a call before its end."""
        came = parse_traceparent(call.traceparent) if call.traceparent else None
        return KeptCall(
            id=call.call_id,
            trace_id=own_trace_id(call.call_id) if came is None else came.trace_id,
            parent_span="" if came is None else came.span_id,
            state="" if came is None else came.state,
            link=call.link,
            threshold=self._sampler.threshold if why is KeptWhy.SAMPLED else "",
            tenant=call.tenant,
            function=call.function,
            ref=call.version.ref,
            version=call.version.id,
            method=call.method.name,
            priority=str(call.priority),
            trigger=_trigger_of(call),
            parent=call.parent,
            kept=why,
            arrived_ns=self._wall_ns() - int(total_ms * 1e6),
            total_ms=total_ms,
            slow_ms=slow_ms,
            stream=call.stream,
            gateway=self._gateway,
        )

    def _keep(self, call: KeptCall) -> None:
        if call.kept is KeptWhy.SLOW:
            self.tell_slow(call)
        self._hold(call)

    def _hold(self, call: KeptCall) -> None:
        self._counts[call.kept] += 1
        self.note_exemplar(call)
        self.calls.add(call)
        self._unsent.append(call)
        self._count_unsent()

    def _hold_sampled(
        self, call: PreparedCall, result: CallResult, stages: dict[str, float], total_ms: float, slow_ms: float
    ) -> None:
        grant, ended_ns, call_id = result.grant, self._wall_ns(), call.call_id
        assert grant is not None  # noqa: S101 - or it is not ordinary
        known, sheet = self._kinds.of(call, result, slow_ms), self.calls.sheet_of(call.tenant)
        if not sheet.unsent:
            self._unsent.append(sheet)
        arrived_ns = ended_ns - int(total_ms * 1e6)
        sheet.write(known, call_id, arrived_ns, total_ms, stages, grant.ahead, result.mates)
        self.calls.count(call.tenant)
        self._sampled_count += 1
        self.note_sampled(total_ms, call_id, ended_ns / 1e9)
        self._count_unsent()

    def _count_unsent(self) -> None:
        self._unsent_count += 1
        if self._unsent_count > MOST_UNSENT:
            first = self._unsent.popleft()
            count = _count_of(first)
            if isinstance(first, OpenSheet):
                first.take()
            self._unsent_count -= count
            self._left_out["unsent"] += count

    def _replace(self, known: KeptCall, by: KeptCall) -> None:
        self.calls.add(by)
        if self._unsent and self._unsent[-1] is known:
            self._unsent[-1] = by


def _count_of(unsent: KeptCall | OpenSheet) -> int:
    return unsent.unsent if isinstance(unsent, OpenSheet) else 1


def _ended_well(begun: KeptCall, result: CallResult, stages: dict[str, float]) -> KeptCall:
    last = sums_left(stages, result.trail)
    grant, spent = result.grant, result.spent
    if grant is not None:
        last = structs.replace(last, container=grant.container, node=grant.node, ahead=grant.ahead, mates=result.mates)
    return structs.replace(
        begun,
        stages=stages,
        cold_start=result.cold_start,
        attempts=(*result.trail, last)[-MOST_ATTEMPTS:],
        batch_size=spent.batch_size if spent is not None else 0,
        units=result.units or {},
        ref=result.fallback or begun.ref,
    )


def sums_left(stages: dict[str, float], trail: tuple[KeptAttempt, ...]) -> KeptAttempt:
    """The last attempt of a call with these stages in all: what those before it have left of them."""

    def left(name: str) -> float:
        before: list[float] = [getattr(one, name) for one in trail]
        return max(0.0, stages.get(name, 0.0) - sum(before))

    return KeptAttempt(
        outcome=WELL,
        queue=left("queue"),
        start=left("start"),
        transport=left("transport"),
        batch_wait=left("batch_wait"),
        execute=left("execute"),
    )


def _trigger_of(call: PreparedCall) -> CallTrigger:
    if call.start_hook is not None:
        return CallTrigger.JOB
    return CallTrigger.NESTED if call.parent else CallTrigger.HTTP


def _limits_of(error: PilotlightError) -> tuple[str, ...]:
    """The names of the limits that refused a call."""
    reached = error.more.get("limits")
    if not isinstance(reached, list | tuple):
        return ()
    return tuple([one.limit for one in reached if isinstance(one, ReachedLimit)])
