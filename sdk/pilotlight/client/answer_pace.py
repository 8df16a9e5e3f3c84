"""How fast the tokens of answers came back to whoever asked, from the chunks of an engine's streams."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

TENTHS = 10_000.0
"""Of a millisecond in a second: as exact as times are kept."""


class TokenTimes:
    """The tokens of one answer, which was asked for at `asked_at`, in seconds."""

    def __init__(self, asked_at: float) -> None:
        self.tokens = 0
        self.first_s = 0.0
        self.gaps: Counter[int] = Counter()
        """How many tokens came so many tenths of a millisecond after the one before."""
        self._asked_at = asked_at
        self._last_at = 0.0

    def add(self, chunk: Any, at: float) -> None:
        """Count the tokens of a chunk; one that has none, or is no engine's, counts as nothing."""
        ids = chunk.get("token_ids") if isinstance(chunk, dict) else None
        count = len(ids) if isinstance(ids, list) else 0
        if not count:
            return
        if not self.tokens:
            self.first_s = at - self._asked_at
        else:
            self.gaps[round((at - self._last_at) / count * TENTHS)] += count
        self.tokens, self._last_at = self.tokens + count, at


class AnswerPace(msgspec.Struct, frozen=True, kw_only=True):
    """How fast tokens came back at one batch size: in all, until the first one, and between two of an answer."""

    batch: int
    tokens_per_second: float
    ttft_p50_ms: float
    ttft_p95_ms: float
    itl_p50_ms: float
    itl_p95_ms: float
    answers: int


def pace_of(batch: int, answers: Sequence[TokenTimes], seconds: float) -> AnswerPace | None:
    """Return the pace of answers that came within so many seconds; None: they have no tokens."""
    spoken = [answer for answer in answers if answer.tokens]
    if not spoken or seconds <= 0:
        return None
    firsts = Counter(round(answer.first_s * TENTHS) for answer in spoken)
    gaps: Counter[int] = Counter()
    for answer in spoken:
        gaps.update(answer.gaps)
    return AnswerPace(
        batch=batch,
        tokens_per_second=float(f"{sum(answer.tokens for answer in spoken) / seconds:.6g}"),
        ttft_p50_ms=_quantile_ms(firsts, 0.5),
        ttft_p95_ms=_quantile_ms(firsts, 0.95),
        itl_p50_ms=_quantile_ms(gaps, 0.5),
        itl_p95_ms=_quantile_ms(gaps, 0.95),
        answers=len(spoken),
    )


def _quantile_ms(tenths: Counter[int], part: float) -> float:
    """The smallest time that so large a part does not exceed; 0 of none."""
    left = math.ceil(tenths.total() * part)
    for each in sorted(tenths):
        left -= tenths[each]
        if left <= 0:
            return each / 10.0
    return 0.0
