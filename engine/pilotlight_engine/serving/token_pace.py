"""How fast tokens come, as callers see it: the time to the first one, and between two of them. Pure; seconds.

Of the last seconds only, in buckets of 5 % each, by the second: what is kept does not grow with the tokens. A sequence
that has had no token for longer than others counts with what it has waited so far, or one that hangs would not be seen.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PART = 0.95
FIRST_WITHIN_S, BETWEEN_WITHIN_S = 30.0, 5.0
"""How far back is looked: a call has one first token, and many after it."""
LEAST_FIRST, LEAST_BETWEEN = 5, 20
"""Fewer of them say nothing of 95 %."""
SHORTEST_S, STEP = 1e-5, math.log(1.05)


@dataclass(frozen=True, slots=True)
class PaceFigures:
    """95 % are not above these, in seconds; 0: too few tokens came lately to say."""

    first_s: float = 0.0
    between_s: float = 0.0
    waited_s: float = 0.0
    """How long the call has waited for its first token that waits for it longest."""


class LatelySeen:
    """Times of the last seconds, and what 95 % of them do not exceed."""

    def __init__(self, within_s: float, least: int) -> None:
        self._within_s = within_s
        self._least = least
        self._seconds: deque[tuple[int, Counter[int]]] = deque()

    def add(self, time_s: float, count: int, at: float) -> None:
        second = int(at)
        if not self._seconds or self._seconds[-1][0] < second:
            self._seconds.append((second, Counter()))
            self._forget(at)
        self._seconds[-1][1][bucket_of(time_s)] += count

    def is_empty(self, at: float) -> bool:
        self._forget(at)
        return not self._seconds

    def p95_s(self, waiting: Iterable[float], at: float) -> float:
        """Of those that are over, and of `waiting` ones that have taken longer than these."""
        self._forget(at)
        together: Counter[int] = Counter()
        for _, seen in self._seconds:
            together.update(seen)
        known = quantile(together)
        together.update(bucket for each in waiting if (bucket := bucket_of(each)) > known)
        return 0.0 if together.total() < self._least else time_of(quantile(together))

    def _forget(self, at: float) -> None:
        while self._seconds and self._seconds[0][0] < at - self._within_s:
            self._seconds.popleft()


class TokenPace:
    """What the sequences of one engine have waited for their tokens."""

    def __init__(self) -> None:
        self._asked: dict[str, float] = {}
        """Since when sequences wait for their first token."""
        self._last: dict[str, float] = {}
        """When the others had their last one."""
        self._first = LatelySeen(FIRST_WITHIN_S, LEAST_FIRST)
        self._between = LatelySeen(BETWEEN_WITHIN_S, LEAST_BETWEEN)

    def admit(self, sequence: str, at: float, *, is_resumed: bool) -> None:
        """It came to the engine; one that goes on had its first token elsewhere."""
        (self._last if is_resumed else self._asked)[sequence] = at

    def add_tokens(self, sequences: Sequence[str], at: float) -> None:
        """A step has brought these a token each; one that is named twice has two."""
        is_plain = len(set(sequences)) == len(sequences)
        counts = dict.fromkeys(sequences, 1) if is_plain else Counter(sequences)
        gaps: dict[float, int] = {}  # most have had their last token in the same step: one time for all of them
        for sequence, count in counts.items():
            last = self._last.get(sequence)
            if last is not None:
                gap = (at - last) / count
                gaps[gap] = gaps.get(gap, 0) + count
            elif (asked := self._asked.pop(sequence, None)) is not None:
                self._first.add(at - asked, 1, at)
            else:
                continue  # it has left
            self._last[sequence] = at
        for gap, count in gaps.items():
            self._between.add(gap, count, at)

    def remove(self, sequence: str) -> None:
        """It has ended, or left."""
        self._asked.pop(sequence, None)
        self._last.pop(sequence, None)

    def is_empty(self, at: float) -> bool:
        """Whether nothing is known any more."""
        return self._first.is_empty(at) and self._between.is_empty(at)

    def figures(self, at: float) -> PaceFigures:
        asked = [at - since for since in self._asked.values()]
        return PaceFigures(
            first_s=self._first.p95_s(asked, at),
            between_s=self._between.p95_s((at - last for last in self._last.values()), at),
            waited_s=max(asked, default=0.0),
        )


def bucket_of(time_s: float) -> int:
    return math.ceil(math.log(max(time_s, SHORTEST_S) / SHORTEST_S) / STEP)


def time_of(bucket: int) -> float:
    """The longest time of a bucket."""
    return SHORTEST_S * math.exp(bucket * STEP)


def quantile(counts: Counter[int]) -> int:
    """The lowest bucket that 95 % do not exceed; -1 of none."""
    left = math.ceil(counts.total() * PART)
    for bucket in sorted(counts):
        left -= counts[bucket]
        if left <= 0:
            return bucket
    return -1
