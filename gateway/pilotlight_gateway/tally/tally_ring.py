"""What was counted of one function, as sealed bytes: minutes of the last hour, and tens of minutes of the last day.

A part that is over is msgpack: some hundred bytes instead of the objects that it was. A slot may have several parts,
such as one that was sealed early to free memory. `SealedBytes` bounds all rings of a gateway together.
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


class TallyRing:
    """The parts of one function, the oldest first."""

    __slots__ = ("minutes", "tens", "tens_from")

    def __init__(self) -> None:
        self.minutes: deque[SealedPart] = deque()
        self.tens: deque[SealedPart] = deque()
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

    def parts(self, since_ns: int) -> Iterator[SealedPart]:
        """Those that end after an instant: minutes as far as they reach, tens before them."""
        first_ns = self.minutes[0].since_ns if self.minutes else 1 << 62
        if since_ns < first_ns:
            for part in self.tens:
                if part.until_ns > since_ns and part.until_ns <= first_ns:
                    yield part
        for part in self.minutes:
            if part.until_ns > since_ns:
                yield part

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum([len(part.data) for part in self.minutes]) + sum([len(part.data) for part in self.tens])
