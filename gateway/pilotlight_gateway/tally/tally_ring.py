"""What was counted of one function, as sealed bytes: minutes of the last hour, and tens of minutes of the last day.

A part that is over is msgpack: some hundred bytes instead of the objects that it was. A slot may have several parts,
such as one that was sealed early to free memory. `SealedBytes` bounds all rings of a gateway together.

Of a function that names levels in `slo=` there are hours of the last three days too, which know nothing but how many
calls kept each level: 72 parts of a quarter of a kilobyte, which no bound takes away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from pilotlight_core.model.messages.seeing.tallies import FunctionTally, HomeTally

MINUTE_NS = 60_000_000_000
TEN_NS = 10 * MINUTE_NS
HOUR_NS = 60 * MINUTE_NS
DAY_NS = 144 * TEN_NS
LEVELS_NS = 3 * DAY_NS
OF_ALL = "availability"
"""The level that every function has: of it there are no hours."""

_encoder = msgspec.msgpack.Encoder()
_tally_of = msgspec.msgpack.Decoder(FunctionTally)
_home_of = msgspec.msgpack.Decoder(HomeTally)


class SealedPart(NamedTuple):
    """A part of a window."""

    since_ns: int
    until_ns: int
    data: bytes

    def tally(self) -> FunctionTally:
        """Of a function's calls."""
        return _tally_of.decode(self.data)

    def home(self) -> HomeTally:
        """Of a function's home."""
        return _home_of.decode(self.data)


def sealed(tally: FunctionTally | HomeTally) -> SealedPart:
    """A part that is over."""
    return SealedPart(tally.since_ns, tally.until_ns, _encoder.encode(tally))


def _hour_of(part: SealedPart) -> int:
    """The hour in which a part ends."""
    return (part.until_ns - 1) // HOUR_NS


class TallyRing:
    """The parts of one function, the oldest first."""

    __slots__ = ("hours", "minutes", "tens", "tens_from")

    def __init__(self) -> None:
        self.minutes: deque[SealedPart] = deque()
        self.tens: deque[SealedPart] = deque()
        self.hours: deque[SealedPart] = deque()
        self.tens_from = 0
        """Up to where the tens reach: minutes behind it are in none yet."""

    def add(self, part: SealedPart) -> None:
        """Add a part that is over."""
        self.minutes.append(part)

    def forget(self, at_ns: int) -> int:
        """Drop what is too old; how many bytes that were."""
        freed = 0
        while self.minutes and self.minutes[0].until_ns <= at_ns - HOUR_NS:
            freed += len(self.minutes.popleft().data)
        while self.tens and self.tens[0].until_ns <= at_ns - DAY_NS:
            freed += len(self.tens.popleft().data)
        while self.hours and self.hours[0].until_ns <= at_ns - LEVELS_NS:
            self.hours.popleft()
        return freed

    def ripe(self, at_ns: int) -> list[SealedPart]:
        """The minutes of the oldest ten that is over and has no part yet."""
        whole_ns = at_ns - at_ns % TEN_NS
        waiting = [part for part in self.minutes if self.tens_from < part.until_ns <= whole_ns]
        if not waiting:
            return []
        end_ns = -(-waiting[0].until_ns // TEN_NS) * TEN_NS
        return [part for part in waiting if part.until_ns <= end_ns]

    def add_ten(self, part: SealedPart) -> None:
        """Add the sum of what `ripe` told."""
        self.tens.append(part)
        self.tens_from = part.until_ns

    def add_levels(self, ten: FunctionTally) -> None:
        """Add to its hour how many calls of a ten kept each level."""
        good, bad = ({name: n for name, n in counts.items() if name != OF_ALL} for counts in (ten.good, ten.bad))
        if not good and not bad:
            return
        since_ns = ten.since_ns
        if self.hours and _hour_of(self.hours[-1]) == (ten.until_ns - 1) // HOUR_NS:
            known = self.hours.pop().tally()
            since_ns = min(since_ns, known.since_ns)
            for counts, more in ((good, known.good), (bad, known.bad)):
                for name, count in more.items():
                    counts[name] = counts.get(name, 0) + count
        self.hours.append(sealed(FunctionTally(since_ns=since_ns, until_ns=ten.until_ns, good=good, bad=bad)))

    def parts(self, since_ns: int) -> Iterator[SealedPart]:
        """Those that end after an instant: minutes as far as they reach, tens before them, and of more than a day hours
        before these.
        """
        first_ns = self.minutes[0].since_ns if self.minutes else 1 << 62
        if since_ns < first_ns:
            last_hour = self._hours_until() if since_ns < self.tens_from - DAY_NS - HOUR_NS else -1
            for part in self.hours:
                if part.until_ns > since_ns and _hour_of(part) <= last_hour:
                    yield part
            for part in self.tens:
                if part.until_ns > since_ns and part.until_ns <= first_ns and _hour_of(part) > last_hour:
                    yield part
        for part in self.minutes:
            if part.until_ns > since_ns:
                yield part

    def _hours_until(self) -> int:
        """The last hour that is told as one: that in which the tens begin, unless it goes on."""
        if not self.tens:
            return _hour_of(self.minutes[0]) - 1 if self.minutes else 1 << 62
        first = _hour_of(self.tens[0])
        return first if self.hours and first < _hour_of(self.hours[-1]) else first - 1

    @property
    def size(self) -> int:
        """Bytes of all parts but hours."""
        return sum([len(part.data) for part in self.minutes]) + sum([len(part.data) for part in self.tens])
