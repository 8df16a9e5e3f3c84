"""Made-up traffic of a function under a rollout, calibrated as services are: lognormal times and costs, rare errors.

Numbers are drawn by numpy for a whole run; each becomes a `ComparedCall`, as gateways tell of calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm, Rollout, RolloutState, RolloutTerms

ROLLOUT = "rol_00000000000000000001"
FUNCTION = "answer"
EXECUTE_MS, GPU_NS, SIZE = 100.0, 1e8, 1e4
"""Medians."""
RAMP = (0.01, 0.05, 0.1, 0.25, 0.5)
RAMP_CALLS = 2_000
"""Of both sides at each step of a ramp, but for the last."""
TENTH = 1.2816
"""A tenth of what is normally distributed is above it."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What calls are like, on both sides."""

    rho: float = 0.5
    """The canary's part; 0: a ramp."""
    errors: float = 0.001
    latency_sd: float = 0.5
    cost_sd: float = 0.6
    """Of logarithms."""
    known: float = 0.0
    """The part of the cost's variance that follows from the declared size; 0: no size is declared."""
    wave: float = 0.0
    """By which part times and costs rise and fall, over the run."""
    tails: float = 0.0
    """The degrees of freedom of Student's t instead of a normal distribution; 0: normal."""


@dataclass(frozen=True, kw_only=True)
class Regression:
    """By what the canary is worse."""

    latency: float = 1.0
    tail_latency: float = 1.0
    """Of the slowest tenth alone."""
    cost: float = 1.0
    errors: float = 0.0
    """Added to the rate."""


SAME = Regression()


class Luck(NamedTuple):
    """What calls are like but for their sides: an array of `(calls,)` each."""

    slow: np.ndarray
    dear: np.ndarray
    size: np.ndarray
    """Of logarithms, over their standard deviations."""
    fault: np.ndarray
    """A call fails if it is below the rate of failures."""
    level: np.ndarray
    """What times and costs are multiplied by just then."""


@dataclass
class TrafficRun:
    """Calls of one run, in their order."""

    traffic: Traffic
    regression: Regression
    calls: int
    generator: np.random.Generator
    made: int = field(default=0, init=False)

    def compared(self, chances: Callable[[Luck, np.ndarray], np.ndarray] | None = None) -> Iterator[ComparedCall]:
        """Calls of both sides. `chances`: by what calls are like, the chance that each is in truth sent to the canary
        with, where that is not the one that it says.
        """
        rho = rhos(self.traffic, self.calls)
        coin = self.generator.random(self.calls)
        phase = 2.0 * math.pi * np.arange(self.calls) / self.calls
        luck = self._luck(1.0 + self.traffic.wave * np.sin(phase))
        yield from self._calls(coin < (rho if chances is None else chances(luck, rho)), rho, luck, Arm.TWIN)

    def history(self, calls: int = 2_000) -> list[ComparedCall]:
        """Calls of the old version before it."""
        never = np.zeros(calls)
        return list(self._calls(never > 0, never, self._luck(np.ones(calls)), Arm.CONTROL))

    def _luck(self, level: np.ndarray) -> Luck:
        count = len(level)
        slow, dear, size = self._normal(count), self._normal(count), self._normal(count)
        return Luck(slow, dear, size, self.generator.random(count), level)

    def _calls(self, canary: np.ndarray, rho: np.ndarray, luck: Luck, old: Arm) -> Iterator[ComparedCall]:
        traffic, worse = self.traffic, self.regression
        slow, dear, size, fault, level = luck
        execute = np.exp(traffic.latency_sd * slow) * level
        execute *= np.where(canary, worse.latency * np.where(slow > TENTH, worse.tail_latency, 1.0), 1.0)
        by_size = traffic.cost_sd * math.sqrt(traffic.known) * size
        cost = np.exp(by_size + traffic.cost_sd * math.sqrt(1.0 - traffic.known) * dear) * level
        cost *= np.where(canary, worse.cost, 1.0)
        failed = fault < traffic.errors + np.where(canary, worse.errors, 0.0)
        sizes = np.exp(by_size) * SIZE if traffic.known else np.zeros(len(canary))
        columns = (canary, rho, execute * EXECUTE_MS, cost * GPU_NS, sizes, failed)
        for is_canary, chance, execute_ms, gpu_ns, declared, is_failed in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            self.made += 1
            yield ComparedCall(
                ROLLOUT, 1, FUNCTION, "", Arm.CANARY if is_canary else old, chance, f"call_{self.made}", "default", "",
                float(self.made), "function_raised" if is_failed else "",
                execute_ms=execute_ms, total_ms=execute_ms, gpu_ns=int(gpu_ns), cost=declared, gpu_type="sim",
            )  # fmt: skip

    def _normal(self, count: int) -> np.ndarray:
        tails = self.traffic.tails
        return self.generator.standard_t(tails, count) if tails else self.generator.standard_normal(count)


def rhos(traffic: Traffic, calls: int) -> np.ndarray:
    """The probability of the canary, for each call."""
    if traffic.rho:
        return np.full(calls, traffic.rho)
    steps = np.minimum(np.arange(calls) // RAMP_CALLS, len(RAMP) - 1)
    return np.array(RAMP)[steps]


def shadow_pairs(noise: float, ratio: float, pairs: int, generator: np.random.Generator) -> Iterator[ComparedCall]:
    """Two shadows of each input, whose costs' ratio strays by `noise`, and is `ratio` in the middle."""
    sizes = 0.6 * generator.standard_normal(pairs)
    each = noise / math.sqrt(2.0) * generator.standard_normal((pairs, 2))
    costs = np.exp(sizes[:, None] + each) * np.array([1.0, ratio]) * GPU_NS
    order = generator.random(pairs) < 0.5
    for number, ((old, new), swapped) in enumerate(zip(costs.tolist(), order.tolist(), strict=True)):
        sides = [(Arm.TWIN, old), (Arm.CANARY, new)]
        for arm, cost in reversed(sides) if swapped else sides:
            yield ComparedCall(
                ROLLOUT, 1, FUNCTION, "", arm, 0.0, f"shadow_{number}_{arm}", "default", "", float(number), "",
                execute_ms=EXECUTE_MS, gpu_ns=int(cost), gpu_type="sim", pair=f"pair_{number}",
            )  # fmt: skip


def running_rollout(terms: RolloutTerms) -> Rollout:
    """A rollout whose ramp is under way."""
    return Rollout(
        id=ROLLOUT, number=1, control={FUNCTION: "ver_old"}, canary={FUNCTION: "ver_new"},
        twins={FUNCTION: "ver_twin"}, terms=terms, salt=bytes(32), state=RolloutState.RAMP, step=0, share=100,
        twin_share=100, since=0.0, started_at=0.0, by="key",
    )  # fmt: skip
