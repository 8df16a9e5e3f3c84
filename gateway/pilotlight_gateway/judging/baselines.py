"""What the old version usually takes, by its calls so far: what scores are measured against.

A stratum is a method on one type of GPU. Within it the expected amount of a call follows from its size, which is its
declared cost parameter or else its body, by a line through the logarithms. A stratum bets only once it is settled, and
its numbers then stay: they may follow from calls of before, and from nothing that a bet is about.
"""

from __future__ import annotations

import math

import msgspec

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall

LEAST_CALLS = 50
"""Before so many there are no bets."""
SETTLED_CALLS = 200
MOST_CALLS = 2_000
"""Further calls of a stratum that is not compared yet change nothing."""
MOST_HELD = 8_000
"""Calls of all strata that are held together."""
MOST_STRATA = 64
SLOW_QUANTILE = 0.95
DEAR_QUANTILE = 0.99
LEAST_SCALE = 0.01
"""Of the logarithm of an amount: what never varies would make a nanosecond an outlier."""
SIZE_MATTERS = 0.2
"""The least correlation by which the size of a call says something."""


class Line(msgspec.Struct, frozen=True):
    """The expected logarithm of an amount by that of a call's size, and how far calls are from it."""

    level: float = 0.0
    slope: float = 0.0
    middle: float = 0.0
    """The median of the residuals."""
    scale: float = 1.0
    """Their standard deviation."""
    high: float = math.inf
    """Their quantile beyond which a call is slow, or dear."""

    def residual(self, size: float, amount: float) -> float:
        """By how much the logarithm of an amount is more than expected."""
        return math.log(amount) - self.level - self.slope * math.log1p(size)


class Stratum(msgspec.Struct):
    """One method on one type of GPU."""

    sizes: list[float] = []
    execute: list[float] = []
    cost: list[float] = []
    """Of the calls so far; empty once it is settled."""
    seen: int = 0
    latency_line: Line | None = None
    cost_line: Line | None = None

    @property
    def is_settled(self) -> bool:
        return self.latency_line is not None and not self.sizes

    def note(self, size: float, execute_ms: float, cost_ns: float) -> None:
        """One more call of the old version."""
        self.sizes.append(size)
        self.execute.append(execute_ms)
        self.cost.append(cost_ns)
        self.seen += 1

    def renew(self, *, settle: bool) -> None:
        """Work the lines out, of the calls so far; `settle`: for good."""
        self.latency_line = line_of(self.sizes, self.execute, SLOW_QUANTILE)
        self.cost_line = line_of(self.sizes, self.cost, DEAR_QUANTILE)
        if settle:
            self.sizes, self.execute, self.cost = [], [], []


class Baselines(msgspec.Struct):
    """By stratum."""

    strata: dict[str, Stratum] = {}
    held: int = 0

    def learn(self, call: ComparedCall, *, comparing: bool) -> None:
        """A call of the old version, whose stratum may not be settled; `comparing`: whether sides are compared yet."""
        stratum = self._of(call)
        if stratum is None or stratum.is_settled:
            return
        execute, cost = call.execute_ms, float(call.gpu_ns)
        if execute <= 0.0 or cost <= 0.0:
            return
        stratum.note(size_of(call), execute, cost)
        self.held += 1
        if stratum.seen in (LEAST_CALLS, 2 * LEAST_CALLS):
            stratum.renew(settle=False)
        if len(stratum.sizes) >= (SETTLED_CALLS if comparing else MOST_CALLS):
            self._settle(stratum)
        elif self.held >= MOST_HELD:
            self.settle()

    def settle(self) -> None:
        """Comparing begins: strata with enough calls keep their numbers from now on."""
        for stratum in self.strata.values():
            if not stratum.is_settled and len(stratum.sizes) >= SETTLED_CALLS:
                self._settle(stratum)

    def of(self, call: ComparedCall) -> Stratum | None:
        """What a call is measured against; None: not enough is known."""
        stratum = self.strata.get(key_of(call))
        return stratum if stratum is not None and stratum.latency_line is not None else None

    def _settle(self, stratum: Stratum) -> None:
        self.held -= len(stratum.sizes)
        stratum.renew(settle=True)

    def _of(self, call: ComparedCall) -> Stratum | None:
        key = key_of(call)
        stratum = self.strata.get(key)
        if stratum is None and len(self.strata) < MOST_STRATA:
            stratum = self.strata[key] = Stratum()
        return stratum


def key_of(call: ComparedCall) -> str:
    return f"{call.function}/{call.method}/{call.gpu_type}"


def size_of(call: ComparedCall) -> float:
    """What is known of a call before it runs: its declared cost, else the bytes of its body."""
    return call.cost or float(call.body_bytes)


def line_of(sizes: list[float], amounts: list[float], quantile: float) -> Line:
    """The line of least squares through the logarithms, flat where the size says nothing."""
    xs, ys = [math.log1p(size) for size in sizes], [math.log(amount) for amount in amounts]
    count = len(xs)
    mean_x, mean_y = math.fsum(xs) / count, math.fsum(ys) / count
    var_x = math.fsum([(x - mean_x) ** 2 for x in xs])
    var_y = math.fsum([(y - mean_y) ** 2 for y in ys])
    both = math.fsum([(x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)])
    matters = var_x > 0.0 and var_y > 0.0 and abs(both) >= SIZE_MATTERS * math.sqrt(var_x * var_y)
    slope = both / var_x if matters else 0.0
    level = mean_y - slope * mean_x
    rests = sorted(y - level - slope * x for x, y in zip(xs, ys, strict=True))
    scale = math.sqrt(math.fsum([rest * rest for rest in rests]) / count)
    high = rests[min(count - 1, math.ceil(quantile * count) - 1)]
    return Line(level, slope, rests[count // 2], max(scale, LEAST_SCALE), high)
