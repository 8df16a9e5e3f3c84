"""A rate with a burst: the generic cell rate algorithm (ITU-T I.371, annex A; ATM Forum, Traffic Management 4.0).

A bucket is one number, the instant at which it is full again ("theoretical arrival time"). Taking n units moves it n
intervals later, and it may lie at most `room` ahead of the present. So for any window of length w with k units taken: k
· interval <= room + w, which is k <= burst + rate · w.

Instants and lengths are whole picoseconds, as rounded sums of floats would sometimes grant one too many. An interval is
rounded up and room down, so rounding only ever refuses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

PS = 10**12
LONGEST_DEBT = 24 * 3600 * PS
"""What is taken beyond the burst and this long a debt is forgiven: a function may count 2**53 tokens at once."""


def instant(at: float) -> int:
    return int(at * PS)


@dataclass(frozen=True)
class Rate:
    """Units per second and a burst. Made by `rate`."""

    interval: int
    """Picoseconds in which one unit returns."""
    room: int
    """Picoseconds in which an empty bucket fills. At least one interval."""

    def length(self, units: float) -> int:
        exact = units * self.interval
        whole = int(exact)
        return whole if whole >= exact else whole + 1  # `math.ceil`, which takes longer


def rate(per_second: float, burst: float) -> Rate:
    """A rate of `per_second` > 0 units with bursts of `burst` >= 1."""
    interval = math.ceil(PS / Fraction(per_second))
    return Rate(interval, max(interval, math.floor(Fraction(burst) * interval)))


class RateBucket:
    __slots__ = ("full_at", "paid_at", "rate")

    def __init__(self, rate: Rate, full_at: int, *, known: bool = True) -> None:
        self.rate = rate
        self.full_at = full_at
        self.paid_at: int | None = full_at if known else None
        """When everything taken has returned, without the cut-off of smaller bursts in between; `change` needs it.
        None: what was taken before is not known."""

    def wait(self, length: int, at: int) -> int:
        """Picoseconds until `length` may be taken; 0: now. More than a burst waits for a full bucket."""
        room = self.rate.room
        over = (self.full_at if self.full_at > at else at) + (length if length < room else room) - room - at
        return over if over > 0 else 0

    def take(self, length: int, at: int) -> int:
        """Take `length`, at most the burst; returns what was taken. Only after `wait` returned 0."""
        room = self.rate.room
        taken = length if length < room else room
        self.full_at = (self.full_at if self.full_at > at else at) + taken
        if self.paid_at is not None:
            self.paid_at = (self.paid_at if self.paid_at > at else at) + taken
        return taken

    def correct(self, length: int, at: int) -> None:
        """Take `length` even into debt, up to the longest, or, if negative, give it back."""
        most = at + self.rate.room + LONGEST_DEBT
        self.full_at = _corrected(self.full_at, length, at, most)
        if self.paid_at is not None:
            self.paid_at = _corrected(self.paid_at, length, at, most)

    def standing(self, at: int) -> tuple[int, int]:
        """Whole units left (0 in debt), and picoseconds until there are more (0: full)."""
        ahead, room, interval = self.full_at - at, self.rate.room, self.rate.interval
        if ahead <= 0:
            return room // interval, 0
        left = (room - ahead) // interval if ahead < room else 0
        # One more is available once room - ahead reaches left + 1 intervals.
        more = ahead - room + (left + 1) * interval
        return left, more if more < ahead else ahead

    def change(self, rate: Rate, at: int) -> None:
        """Apply another rate from now on.

        The bucket then holds the new burst less all that was taken and has not returned or, if that is less or not
        known, what was left, up to the new burst. So changing a limit back and forth never gives more than the largest
        burst and what has returned.
        """
        if rate == self.rate:
            return
        left = Fraction(self.rate.room - max(0, self.full_at - at), self.rate.interval)
        ahead = max(0, rate.room - math.floor(left * rate.interval))
        if self.paid_at is not None:
            owed = math.ceil(Fraction(max(0, self.paid_at - at) * rate.interval, self.rate.interval))
            self.paid_at, ahead = at + owed, min(ahead, owed)
        self.rate, self.full_at = rate, at + ahead


def _corrected(full_at: int, length: int, at: int, most: int) -> int:
    return full_at + length if length <= 0 else max(full_at, min(max(full_at, at) + length, most))
