"""What this gateway counts of calls, by function and version: the minute that goes on, and sealed parts of a day.

A call that ends costs one tuple here. The tuples of a tenth of a second are added up together (`fold`), at latest each
`FOLD_AT` of them. Memory is bounded whatever tenants do:

    KEYS functions with versions have counts of their own, and rings; a new one takes the place of one that had no call
    for IDLE_NS, and else counts as "other" of its tenant, or of all tenants beyond OTHERS of them. Buckets of all
    sketches of minutes that go on are at most LIVE_BUCKETS, about 100 bytes each; the function with the most is sealed
    early. Sealed parts of all functions are at most SEALED_BYTES: the oldest minutes go first, then the oldest tens.

    Hours of levels are 72 for each key of a function that names levels, a quarter of a kilobyte each.

So a gateway spends at most about 40 + 64 + 8 + 9 MB on tallies, of 10,000 functions as of 500.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import structlog

from pilotlight_core.model.errors import PLATFORMS_FAULT
from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.messages.seeing.tallies import CallTotals, FunctionTally
from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_sink import FailedCall
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.streams.stream_pace import StreamPace
from pilotlight_gateway.tally.platform_totals import PlatformTotals
from pilotlight_gateway.tally.tally import LARGEST_BATCH, NO_SLO, NS_PER_MS, SAMPLES, SLOWEST, TallyCounts
from pilotlight_gateway.tally.tally_ring import HOUR_NS, MINUTE_NS, TallyRing, sealed
from pilotlight_gateway.tally.tally_totals import TotalCounts

log = structlog.get_logger(__name__)
KEYS = 512
OTHERS = 64
IDLE_NS = 120_000_000_000
FOLD_AT = 256
LIVE_BUCKETS = 400_000
SEALED_BYTES = 64_000_000
TEN_SAMPLES = 16
PPM_MS = float(WHOLE_DEVICE * NS_PER_MS)
SEALS_A_FOLD = 8
"""Minutes that are sealed in one turn at most: all at once would hold the loop."""


class TallyKey(NamedTuple):
    """Whose calls are counted together."""

    function: str
    """`tenant:app.function` of the owner; `tenant:` or `:`: others of a tenant, or of all."""
    version: str
    arm: str = ""
    """As `ToldTally.arm`."""


class EndedRow:
    """What is kept of a call that ended well until it is added up: nothing that is large."""

    __slots__ = (
        "attempts", "body_in", "body_out", "call_id", "cold_start", "method", "pace", "spent", "stages", "total_ms",
        "units", "version",
    )  # fmt: skip

    def __init__(self, call: PreparedCall, result: CallResult, stages: dict[str, float], total_ms: float) -> None:
        self.version = call.version
        self.call_id = call.call_id
        self.total_ms = total_ms
        self.stages = stages
        self.cold_start: dict[str, float] | None = result.cold_start
        self.attempts: int = result.attempts
        self.spent: Spent | None = result.spent
        self.units: dict[str, int] | None = result.units
        self.body_in = len(call.input)
        self.body_out: int = len(result.output) or result.answer_size
        self.pace = call.pace
        self.method = call.method


class FailedRow(NamedTuple):
    """The same of one that failed, or was refused."""

    version: VersionRecord
    code: str
    total_ms: float
    was_call: bool
    """Whether it counts as arrived already."""
    is_gone: bool
    attempts: int
    spent: Spent | None


class Tallied:
    """One key: the minute that goes on, and what is over."""

    __slots__ = ("counts", "key", "ring", "totals", "used_ns")

    def __init__(self, key: TallyKey, counts: TallyCounts) -> None:
        self.key = key
        self.totals = TotalCounts()
        """Of the minutes that are sealed."""
        self.counts = counts
        self.ring = TallyRing()
        self.used_ns = counts.since_ns


class Tallies:
    """Counts calls by function. `wall`: unix nanoseconds, `arm`: which calls they are, as `ToldTally.arm`; the other
    arguments are bounds.
    """

    def __init__(
        self,
        wall: Callable[[], int] = time.time_ns,
        *,
        arm: str = "",
        keys: int = KEYS,
        live_buckets: int = LIVE_BUCKETS,
        most_sealed: int = SEALED_BYTES,
    ) -> None:
        self._wall = wall
        self._arm = arm
        self._keys = keys
        self._live_buckets = live_buckets
        self._most_sealed = most_sealed
        self._ended: list[EndedRow] = []
        self._failed: list[FailedRow] = []
        self._arrived: dict[str, int] = {}
        """By version id."""
        self._versions: dict[str, VersionRecord] = {}
        """Of those."""
        self._gaps: list[tuple[VersionRecord, list[tuple[float, int]]]] = []
        self._known: dict[str, Tallied] = {}
        """By version id."""
        self._others: dict[str, Tallied] = {}
        """By tenant."""
        self._unsealed: deque[tuple[Tallied, TallyCounts]] = deque()
        """Minutes that are over."""
        self._order: deque[tuple[int, Tallied]] = deque()
        """Sealed minutes of all rings by their end, the oldest first."""
        self._ten_order: deque[Tallied] = deque()
        self._minute_ns = 0
        self._none_idle_until_ns = 0
        """None is looked for before."""
        self._folds = 0
        self.platform = PlatformTotals()
        self.sealed_bytes = 0
        self.dropped = 0
        """Sealed parts that the bound has cost."""
        self.calls = 0
        """That ended."""

    # -- calls, within their turn ----------------------------------------------------------------------------------

    def call_arrived(self, version: VersionRecord, count: int = 1) -> None:
        """Calls of a version are inside from now on; fewer than 0: those that did not run were none."""
        name = version.id
        before = self._arrived.get(name)
        if before is None:
            self._versions[name] = version
            self._arrived[name] = count
        else:
            self._arrived[name] = before + count

    def call_ended(self, call: PreparedCall, result: CallResult, stages: dict[str, float], total_ms: float) -> None:
        """A call has ended well."""
        self._ended.append(EndedRow(call, result, stages, total_ms))
        if len(self._ended) >= FOLD_AT:
            self.fold()

    def call_failed(self, failed: FailedCall) -> None:
        """A call has failed, or was refused; of one whose version is not known nothing is kept."""
        if (called := failed.called) is not None:
            course = failed.course
            attempts, spent = (course.attempts, course.spent) if course is not None else (0, None)
            was_call = failed.call is not None
            row = FailedRow(called, failed.code, failed.total_ms, was_call, failed.is_client_gone, attempts, spent)
            self._failed.append(row)
            if len(self._failed) >= FOLD_AT:
                self.fold()

    def add_gaps(self, call: PreparedCall, gaps: list[tuple[float, int]]) -> None:
        """Gaps between the chunks of a stream that goes on."""
        self._gaps.append((call.version, gaps))

    # -- adding up -------------------------------------------------------------------------------------------------

    def fold(self) -> None:
        """Add up what has gathered. What goes wrong is lost, and costs no call its answer."""
        try:
            self._fold(self._wall())
        except Exception:
            log.exception("what was counted of calls could not be added up")

    def _fold(self, at_ns: int) -> None:
        minute_ns = at_ns - at_ns % MINUTE_NS
        if minute_ns != self._minute_ns:
            self._turn(minute_ns)
        if self._arrived:
            for name, count in self._arrived.items():
                counts = self._of(self._versions[name], at_ns).counts
                counts.arrivals = max(0, counts.arrivals + count)
                counts.add_inside(count, at_ns)
            self._arrived, self._versions = {}, {}
        ended, self._ended = self._ended, []
        for row in ended:
            self._add_ended(row, at_ns)
        if self._failed:
            failed, self._failed = self._failed, []
            for each in failed:
                self._add_failed(each, at_ns)
        if self._gaps:
            gaps, self._gaps = self._gaps, []
            for version, some in gaps:
                _add_gaps(self._of(version, at_ns).counts, some)
                self.platform.add_gaps(some)
        self._tidy(at_ns)

    def _add_ended(self, row: EndedRow, at_ns: int) -> None:
        tallied = self._known.get(row.version.id)
        if tallied is None:
            tallied = self._of(row.version, at_ns)
        tallied.used_ns = at_ns
        counts, total_ms = tallied.counts, row.total_ms
        self.calls += 1
        counts.ended += 1
        counts.add_inside(-1, at_ns)
        counts.durations.add(total_ms)
        counts.add_stages(row.stages)
        counts.attempts += row.attempts
        if row.attempts > 1:
            counts.retried += 1
            self.platform.retries += row.attempts - 1
        counts.body_in += row.body_in
        counts.body_out += row.body_out
        size = 1
        if (spent := row.spent) is not None:
            size = min(spent.batch_size, LARGEST_BATCH)
            counts.busy_ns += spent.ns
            counts.add_batch(size, spent.ns * spent.ppm / PPM_MS)
            self.platform.add_batch(row.method, size)
        if row.cold_start is not None:
            counts.add_steps(row.cold_start)
        if row.units is not None:
            counts.add_units(row.units)
            self.platform.add_units(row.units)
        levels = counts.levels
        if levels.p95_ms is not None:
            counts.note_level("unary", good=total_ms <= levels.p95_ms)
        if row.pace is not None:
            _add_pace(counts, row.pace)
            self.platform.add_gaps(row.pace.gaps)
        counts.offer(row.call_id, at_ns, total_ms, row.stages, size, row.attempts, row.cold_start is not None)

    def _add_failed(self, row: FailedRow, at_ns: int) -> None:
        tallied = self._of(row.version, at_ns)
        tallied.used_ns = at_ns
        counts = tallied.counts
        self.calls += 1
        if row.was_call:
            counts.add_inside(-1, at_ns)
        else:
            counts.arrivals += 1
        if row.is_gone:
            counts.gone += 1
        else:
            counts.failures[row.code] = counts.failures.get(row.code, 0) + 1
            counts.failed_durations.add(row.total_ms)
            if row.code in PLATFORMS_FAULT:
                counts.note_level("availability", good=False)
        counts.attempts += row.attempts
        if row.attempts > 1:
            counts.retried += 1
            self.platform.retries += row.attempts - 1
        if (spent := row.spent) is not None:
            counts.busy_ns += spent.ns

    def _of(self, version: VersionRecord, at_ns: int) -> Tallied:
        """Where calls of a version count."""
        tallied = self._known.get(version.id)
        if tallied is not None:
            return tallied
        if len(self._known) < self._keys or self._make_room(at_ns):
            function = f"{version.tenant}:{version.app}.{version.function}"
            levels = NO_SLO if self._arm else version.spec.slo  # which is about callers who wait
            counts = TallyCounts(max(self._minute_ns, at_ns), levels)
            tallied = self._known[version.id] = Tallied(TallyKey(function, version.id, self._arm), counts)
            return tallied
        tenant = version.tenant
        if tenant not in self._others and len(self._others) >= OTHERS:
            tenant = ""
        other = self._others.get(tenant)
        if other is None:
            other = self._others[tenant] = Tallied(TallyKey(f"{tenant}:", "", self._arm), TallyCounts(at_ns))
        return other

    def _make_room(self, at_ns: int) -> bool:
        """Forget the key that was used least lately, if it is idle."""
        if at_ns < self._none_idle_until_ns:
            return False
        oldest_ns, name = at_ns, ""
        for version, tallied in self._known.items():
            if tallied.used_ns < oldest_ns and not tallied.counts.inside:
                oldest_ns, name = tallied.used_ns, version
        if not name or oldest_ns > at_ns - IDLE_NS:
            self._none_idle_until_ns = oldest_ns + IDLE_NS
            return False
        gone = self._known.pop(name)
        # A function's counters add up those of its versions: they never fall as long as one of these is here.
        for kept in self._known.values():
            if kept.key.function == gone.key.function:
                kept.totals.merge(self.totals_of(gone))
                break
        self.sealed_bytes -= gone.ring.size
        gone.ring = TallyRing()
        return True

    # -- minutes that are over ---------------------------------------------------------------------------------------

    def _turn(self, minute_ns: int) -> None:
        """A minute begins."""
        for tallied in self.each():
            self._close(tallied, minute_ns)
        self._minute_ns = minute_ns

    def _close(self, tallied: Tallied, at_ns: int) -> None:
        """What was counted of one key until now is over."""
        counts = tallied.counts
        counts.add_inside(0, at_ns)
        counts.until_ns = at_ns
        following = TallyCounts(at_ns, counts.levels)
        following.inside = counts.inside
        tallied.counts = following
        if not counts.is_empty:
            self._unsealed.append((tallied, counts))

    def _tidy(self, at_ns: int) -> None:
        """A turn's share of sealing, adding up tens, and forgetting."""
        for _ in range(min(SEALS_A_FOLD, len(self._unsealed))):
            self._seal(*self._unsealed.popleft())
        self._folds += 1
        if self._folds % 10 == 0:
            self._bound_live(at_ns)
        order = self._order
        while order and (order[0][0] <= at_ns - HOUR_NS or self.sealed_bytes > self._most_sealed):
            tallied = order.popleft()[1]
            self._make_ten(tallied, at_ns)
            minutes = tallied.ring.minutes
            if minutes:
                self.dropped += minutes[0].until_ns > at_ns - HOUR_NS
                self.sealed_bytes -= len(minutes.popleft().data)
        while self.sealed_bytes > self._most_sealed and self._ten_order:
            tens = self._ten_order.popleft().ring.tens
            if tens:
                self.dropped += 1
                self.sealed_bytes -= len(tens.popleft().data)

    def _seal(self, tallied: Tallied, counts: TallyCounts) -> None:
        tally = counts.value(counts.until_ns, SAMPLES, SLOWEST)
        part = sealed(tally)
        if self._known.get(tallied.key.version) is not tallied and tallied.key.version:
            return  # it was forgotten meanwhile
        tallied.ring.add(part)
        tallied.totals.add(tally)
        self.sealed_bytes += len(part.data) - tallied.ring.forget(part.until_ns)
        self._order.append((part.until_ns, tallied))
        self._make_ten(tallied, part.until_ns)

    def _make_ten(self, tallied: Tallied, at_ns: int) -> None:
        """Add up ten minutes that are over, if there are any."""
        ripe = tallied.ring.ripe(at_ns)
        if ripe:
            together = TallyCounts(0)
            for part in ripe:
                together.merge(part.tally())
            ten = together.value(together.until_ns, TEN_SAMPLES, SLOWEST)
            part = sealed(ten)
            tallied.ring.add_ten(part)
            tallied.ring.add_levels(ten)
            self.sealed_bytes += len(part.data)
            self._ten_order.append(tallied)

    def _bound_live(self, at_ns: int) -> None:
        """Seal the key with the most buckets early, if all have too many."""
        most, fattest, total = 0, None, 0
        for tallied in self.each():
            buckets = tallied.counts.buckets
            total += buckets
            if buckets > most:
                most, fattest = buckets, tallied
        if total > self._live_buckets and fattest is not None:
            self._close(fattest, at_ns)
            self._seal(*self._unsealed.pop())

    # -- what is told ------------------------------------------------------------------------------------------------

    def each(self) -> list[Tallied]:
        """All keys."""
        return [*self._known.values(), *self._others.values()]

    def parts_of(self, tallied: Tallied, since_ns: int) -> Iterator[FunctionTally]:
        """The parts of one key that end after an instant, the oldest first, with the minute that goes on."""
        for part in tallied.ring.parts(since_ns):
            yield part.tally()
        for whose, counts in self._unsealed:
            if whose is tallied and counts.until_ns > since_ns:
                yield counts.value(counts.until_ns, SAMPLES, SLOWEST)
        counts, at_ns = tallied.counts, self._wall()
        counts.add_inside(0, at_ns)
        if not counts.is_empty:
            yield counts.value(at_ns, SAMPLES, SLOWEST)

    def totals_of(self, tallied: Tallied) -> CallTotals:
        """What was counted of one key since it is known."""
        totals = TotalCounts()
        totals.merge(tallied.totals.value())
        for whose, counts in self._unsealed:
            if whose is tallied:
                totals.add(counts.value(counts.until_ns, 0, 0))
        totals.add(tallied.counts.value(self._wall(), 0, 0))
        return totals.value()

    def __len__(self) -> int:
        return len(self._known) + len(self._others)


def _add_gaps(counts: TallyCounts, gaps: list[tuple[float, int]]) -> None:
    for gap_ms, chunks in gaps:
        counts.gaps.add(gap_ms, chunks)


def _add_pace(counts: TallyCounts, pace: StreamPace) -> None:
    """How a stream came that has ended."""
    counts.first_chunks.add(pace.first_chunk_ms)
    counts.unread_ms += pace.unread_ms
    _add_gaps(counts, pace.gaps)
    levels = counts.levels
    if levels.ttft_ms is not None:
        counts.note_level("first_chunk", good=pace.first_chunk_ms <= levels.ttft_ms)
    if levels.itl_ms is not None and pace.seen:
        counts.note_level("gap", good=pace.keeps_gaps)
