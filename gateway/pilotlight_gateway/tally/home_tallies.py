"""What the homes of this gateway see of functions: integrals over time of samples, one a second.

A sample stands for the time since the last one. It costs some microseconds a version that has calls or containers, and
nothing a call. Bounded as `Tallies` are: KEYS versions, whose parts have about 130 bytes each, so 14 MB at most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from pilotlight_core.model.messages.seeing.tallies import HomeTally
from pilotlight_gateway.home.home_report import HomeVersionLoad
from pilotlight_gateway.tally.tallies import KEYS, TallyKey
from pilotlight_gateway.tally.tally_ring import DAY_NS, MINUTE_NS, TallyRing, sealed

SEALS_A_SAMPLE = 32
"""Minutes that are sealed in one turn at most."""
LONGEST_STEP_S = 5.0
"""A sample stands for no more than this: the process stood still, and nobody knows how it was."""


class HomeCounts:
    """Of one version, in a window. Instants are unix nanoseconds."""

    def __init__(self, since_ns: int) -> None:
        self.since_ns = self.until_ns = since_ns
        self.seen_s = self.queued_s = self.running_s = self.ready_s = self.starting_s = self.wanted_s = 0.0
        self.shortage_s = self.idle_credit_s = self.slots_s = self.busy_s = self.oldest_ms = 0.0
        self.most_queued = self.most_ready = 0

    def note_sample(self, load: HomeVersionLoad, passed_s: float, at_ns: int) -> None:
        """It was so for a time, until an instant."""
        self.until_ns = at_ns
        self.seen_s += passed_s
        self.queued_s += load.queued * passed_s
        self.running_s += load.running * passed_s
        self.ready_s += load.ready * passed_s
        self.starting_s += load.starting * passed_s
        self.wanted_s += (load.ready + load.starting + load.is_short) * passed_s
        self.shortage_s += load.is_short * passed_s
        self.idle_credit_s += (load.queued > 0 and load.has_room) * passed_s
        self.slots_s += load.slots * passed_s
        self.busy_s += load.busy * passed_s
        self.most_queued = max(self.most_queued, load.queued)
        self.most_ready = max(self.most_ready, load.ready)
        self.oldest_ms = max(self.oldest_ms, load.oldest_ms)

    def merge(self, other: HomeTally) -> None:
        """Add what another part saw: of another version, gateway or time."""
        if not self.since_ns or (other.since_ns and other.since_ns < self.since_ns):
            self.since_ns = other.since_ns
        self.until_ns = max(self.until_ns, other.until_ns)
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in MOSTS:
            setattr(self, name, max(getattr(self, name), getattr(other, name)))

    def value(self) -> HomeTally:
        """What was seen."""
        return HomeTally(
            since_ns=self.since_ns,
            until_ns=self.until_ns,
            most_queued=self.most_queued,
            most_ready=self.most_ready,
            oldest_ms=self.oldest_ms,
            **{name: getattr(self, name) for name in SUMS},
        )


SUMS = (
    "seen_s", "queued_s", "running_s", "ready_s", "starting_s", "wanted_s", "shortage_s", "idle_credit_s", "slots_s",
    "busy_s",
)  # fmt: skip
MOSTS = ("most_queued", "most_ready", "oldest_ms")


class TalliedHome:
    """One version."""

    def __init__(self, key: TallyKey, since_ns: int) -> None:
        self.key = key
        self.counts = HomeCounts(since_ns)
        self.ring = TallyRing()
        self.used_ns = since_ns


class HomeTallies:
    """Of all versions whose home is here."""

    def __init__(self) -> None:
        self._known: dict[str, TalliedHome] = {}
        """By version id."""
        self._unsealed: deque[tuple[TalliedHome, HomeCounts]] = deque()
        """Minutes that are over."""
        self._sampled_ns = 0

    def note_sample(self, loads: Iterable[HomeVersionLoad], at_ns: int) -> None:
        """How it is at an instant."""
        passed_s = min(max(0.0, (at_ns - self._sampled_ns) / 1e9), LONGEST_STEP_S) if self._sampled_ns else 0.0
        if self._sampled_ns // MINUTE_NS != at_ns // MINUTE_NS:
            self._turn(at_ns - at_ns % MINUTE_NS)
        self._sampled_ns = at_ns
        for load in loads:
            known = self._known.get(load.version)
            if known is None:
                if len(self._known) >= KEYS and not self._make_room(at_ns):
                    continue
                known = self._known[load.version] = TalliedHome(TallyKey(load.function, load.version), at_ns)
            known.used_ns = at_ns
            known.counts.note_sample(load, passed_s, at_ns)
        for _ in range(min(SEALS_A_SAMPLE, len(self._unsealed))):
            self._seal(*self._unsealed.popleft(), at_ns)

    def _turn(self, minute_ns: int) -> None:
        for known in self._known.values():
            counts, known.counts = known.counts, HomeCounts(minute_ns)
            if counts.seen_s:
                counts.until_ns = minute_ns
                self._unsealed.append((known, counts))
        for version in [name for name, known in self._known.items() if minute_ns - known.used_ns > DAY_NS]:
            del self._known[version]

    def _seal(self, known: TalliedHome, counts: HomeCounts, at_ns: int) -> None:
        known.ring.add(sealed(counts.value()))
        known.ring.forget(at_ns)
        ripe = known.ring.ripe(at_ns)
        if ripe:
            together = HomeCounts(0)
            for part in ripe:
                together.merge(part.home())
            known.ring.add_ten(sealed(together.value()))

    def _make_room(self, at_ns: int) -> bool:
        oldest = min(self._known.values(), key=lambda known: known.used_ns)
        if at_ns - oldest.used_ns < MINUTE_NS:
            return False
        del self._known[oldest.key.version]
        return True

    def each(self) -> list[TalliedHome]:
        """All versions."""
        return list(self._known.values())

    def parts_of(self, known: TalliedHome, since_ns: int) -> Iterator[HomeTally]:
        """The parts of one version that end after an instant, the oldest first, with the minute that goes on."""
        for part in known.ring.parts(since_ns):
            yield part.home()
        for whose, counts in self._unsealed:
            if whose is known and counts.until_ns > since_ns:
                yield counts.value()
        if known.counts.seen_s:
            yield known.counts.value()
