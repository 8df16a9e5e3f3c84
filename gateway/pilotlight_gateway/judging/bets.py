"""E-processes, each a few numbers that a call changes: what `e` says is how much a bet on "it is worse" has won.

`a` is 1 for the new version and 0 for the old, `rho` the probability with which the call was sent to the new one.
"""

from __future__ import annotations

import math

import msgspec

EVENT_RATIOS = (1.15, 1.35, 1.7, 2.3, 3.5, 6.0, 12.0, 30.0)
"""How much more often an event may be on the new side, for each of which there is a bet."""
AMOUNT_STAKES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
PAIR_STAKES = (0.05, 0.1, 0.2, 0.4, 0.8)
PROOF_STAKES = (0.1, 0.4, 0.8)
CRASH_RATES = (0.05, 0.15, 0.4, 0.9)
LEAST_CRASHES = 0.02
LARGEST_LOG = 600.0
"""Beyond it a number would be infinite: it is decided long before."""
SRM_WEIGHT = 100.0


def mean_exp(logs: list[float]) -> float:
    """The mean of the exponentials, as the wealth of bets that share a stake equally."""
    return math.fsum([math.exp(min(log, LARGEST_LOG)) for log in logs]) / len(logs)


class EventBet(msgspec.Struct):
    """Events, such as failures: given that one happened, the new version had it with probability `rho` if no worse."""

    logs: list[float] = msgspec.field(default_factory=lambda: [0.0] * len(EVENT_RATIOS))
    new: int = 0
    old: int = 0
    """Events of each side."""

    def note(self, a: int, rho: float) -> None:
        if not 0.0 < rho < 1.0:
            return
        logs = self.logs
        for at, ratio in enumerate(EVENT_RATIOS):
            logs[at] += a * math.log(ratio) - math.log(1.0 - rho + rho * ratio)
        if a:
            self.new += 1
        else:
            self.old += 1

    @property
    def e(self) -> float:
        return mean_exp(self.logs)


class AmountBet(msgspec.Struct):
    """Amounts of which less is better, as scores in [-1, 1] around what the old version usually has."""

    logs: list[float] = msgspec.field(default_factory=lambda: [0.0] * len(AMOUNT_STAKES))

    def note(self, a: int, rho: float, score: float) -> None:
        if not 0.0 < rho < 1.0:
            return
        logs, edge = self.logs, (a - rho) * score / max(rho, 1.0 - rho)
        for at, stake in enumerate(AMOUNT_STAKES):
            logs[at] += math.log1p(stake * edge)

    @property
    def e(self) -> float:
        return mean_exp(self.logs)


class ProofBet(msgspec.Struct):
    """The mirror of an `AmountBet`: that the new version is less than a part `within` worse."""

    within: float
    logs: list[float] = msgspec.field(default_factory=lambda: [0.0] * len(PROOF_STAKES))

    def note(self, a: int, rho: float, score: float) -> None:
        """`score`: with the new version's amount divided by 1 + `within`."""
        if not 0.0 < rho < 1.0:
            return
        logs, edge = self.logs, (rho - a) * score / max(rho, 1.0 - rho)
        for at, stake in enumerate(PROOF_STAKES):
            logs[at] += math.log1p(stake * edge)

    @property
    def e(self) -> float:
        return mean_exp(self.logs)


class CrashBet(msgspec.Struct):
    """Failures of the new version alone, against a rate that would be bad in any version: the fast alarm."""

    least: float = LEAST_CRASHES
    """The rate that is no alarm."""
    logs: list[float] = msgspec.field(default_factory=lambda: [0.0] * len(CRASH_RATES))

    def note(self, *, failed: bool) -> None:
        logs, least = self.logs, self.least
        for at, rate in enumerate(CRASH_RATES):
            if rate > least:
                logs[at] += math.log(rate / least) if failed else math.log((1.0 - rate) / (1.0 - least))

    @property
    def e(self) -> float:
        return mean_exp(self.logs)


class SplitBet(msgspec.Struct):
    """Whether calls are sent as is said: else nothing that is counted of them means anything (sample ratio)."""

    segments: list[tuple[float, int, int]] = []
    """Each rho in its turn, with the calls of the new and the old version."""
    log_before: float = 0.0
    """Of segments that are over."""

    def note(self, a: int, rho: float) -> None:
        if not 0.0 < rho < 1.0:
            return
        if not self.segments or self.segments[-1][0] != rho:
            self.log_before += self._log_of_last()
            self.segments = [(rho, 0, 0)]
        at, new, old = self.segments[-1]
        self.segments[-1] = (at, new + a, old + 1 - a)

    def _log_of_last(self) -> float:
        if not self.segments:
            return 0.0
        rho, new, old = self.segments[-1]
        alpha, beta = SRM_WEIGHT * rho, SRM_WEIGHT * (1.0 - rho)
        return (
            _log_beta(alpha + new, beta + old) - _log_beta(alpha, beta)
            - new * math.log(rho) - old * math.log(1.0 - rho)
        )  # fmt: skip

    @property
    def e(self) -> float:
        return math.exp(min(self.log_before + self._log_of_last(), LARGEST_LOG))


class PairBet(msgspec.Struct):
    """Two shadows of one input: the log ratio of what they cost, in units of how much pairs differ anyway."""

    tolerance: float = 0.01
    logs: list[float] = msgspec.field(default_factory=lambda: [0.0] * len(PAIR_STAKES))
    ratios: list[float] = []
    """Of the pairs, until the scale is settled."""
    seen: int = 0
    scale: float = 0.0
    """0: not known yet."""

    def note(self, new: float, old: float) -> None:
        """What both have cost; more than 0."""
        if not (new > 0.0 and old > 0.0):
            return
        ratio = math.log(new / old)
        if self.scale > 0.0:
            z = clipped((ratio - math.log1p(self.tolerance)) / (3.0 * self.scale))
            logs = self.logs
            for at, stake in enumerate(PAIR_STAKES):
                logs[at] += math.log1p(stake * z)
        self.seen += 1
        if self.seen <= MOST_RATIOS:
            self.ratios.append(ratio)
            if self.seen >= UNJUDGED_PAIRS and (self.seen in RESCALED_AT):
                self.scale = max(1.4826 * spread_of(self.ratios), 1e-4)
            if self.seen == MOST_RATIOS:
                self.ratios = []

    @property
    def e(self) -> float:
        return mean_exp(self.logs)


UNJUDGED_PAIRS = 20
MOST_RATIOS = 640
RESCALED_AT = frozenset({20, 40, 80, 160, 320, 640})


def spread_of(values: list[float]) -> float:
    """The median of the distances from the median."""
    middle = median(values)
    return median([abs(value - middle) for value in values])


def median(values: list[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else 0.5 * (ordered[half - 1] + ordered[half])


def clipped(value: float) -> float:
    return -1.0 if value < -1.0 else 1.0 if value > 1.0 else value


def _log_beta(alpha: float, beta: float) -> float:
    return math.lgamma(alpha) + math.lgamma(beta) - math.lgamma(alpha + beta)
