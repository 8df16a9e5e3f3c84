"""How likely it is that an equal version is rolled back, by few runs: sides are drawn by tilted coins, and weighed.

Such a rollback is rare, so a plain count takes thousands of runs. Here a run draws the sides of its calls by a coin
under which one of the guards' bets is right, or by the plain one, which coin being drawn first; the calls themselves
are as they are, and say the plain chance. A run that is rolled back counts as much as its sides up to there are likely
by the plain coin, over how likely they are by the mixture of all coins; one that is not counts 0. The mean is unbiased,
whatever the judge does, and no run counts more than `1 / PLAIN` (importance sampling from a defensive mixture:
Hesterberg, Technometrics 37, 1995; Owen and Zhou, JASA 95, 2000).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from benchmarks.rollout_traffic import Luck, Traffic
from pilotlight_gateway.judging.guards.amount_guard import STAKES
from pilotlight_gateway.judging.guards.event_guard import RATIOS

PLAIN = 0.25
"""Runs whose coin is the plain one."""
SPREADS = 3.0
"""Standard deviations of a logarithm that a score of 1 is."""
SLOW, DEAR = 1.645, 2.326
"""Standard deviations above which a twentieth, and a hundredth, are."""


class Tilt(NamedTuple):
    """A coin: more likely the canary's by what a call is like."""

    kind: str
    """`failed`, `slow` and `dear` are events, `latency` and `cost` amounts."""
    strength: float
    """How many times as likely an event is the canary's; of an amount, the part of its score that is at stake."""

    def chances(self, traffic: Traffic, luck: Luck, rho: np.ndarray) -> np.ndarray:
        """The chance of the canary for each call; `rho`: by the plain coin."""
        what = _noticed(self.kind, traffic, luck)
        if self.kind in ("latency", "cost"):
            leaning: np.ndarray = rho * (1.0 + self.strength * (1.0 - rho) / np.maximum(rho, 1.0 - rho) * what)
            return leaning
        return np.where(what > 0.0, rho * self.strength / (1.0 - rho + rho * self.strength), rho)


TILTS = (
    *(Tilt(kind, ratio) for kind in ("failed", "slow", "dear") for ratio in RATIOS),
    *(Tilt(kind, stake) for kind in ("latency", "cost") for stake in STAKES),
)


class TiltedCoins:
    """The coins of one run: draws by one of them, and knows how likely the sides are by each."""

    def __init__(self, traffic: Traffic, generator: np.random.Generator) -> None:
        plain = generator.random() < PLAIN
        self._tilt = None if plain else TILTS[int(generator.integers(len(TILTS)))]
        self._traffic = traffic
        self._luck: Luck | None = None
        self._rho = np.zeros(0)

    def chances(self, luck: Luck, rho: np.ndarray) -> np.ndarray:
        """The chance with which each call is sent to the canary in this run."""
        self._luck, self._rho = luck, rho
        return rho if self._tilt is None else self._tilt.chances(self._traffic, luck, rho)

    def weight(self, canary: np.ndarray) -> float:
        """How likely the sides of the first calls are by the plain coin, over the mixture of all."""
        luck, count = self._luck, len(canary)
        assert luck is not None
        first, rho = Luck(*(column[:count] for column in luck)), self._rho[:count]
        ratios = []
        for tilt in TILTS:
            chances = tilt.chances(self._traffic, first, rho)
            by_side = np.where(canary, chances / rho, (1.0 - chances) / (1.0 - rho))
            ratios.append(math.exp(min(float(np.log(by_side).sum()), 600.0)))
        return 1.0 / (PLAIN + (1.0 - PLAIN) * sum(ratios) / len(ratios))


class Likelihood(NamedTuple):
    """An estimated chance, with its standard error."""

    chance: float
    error: float

    @property
    def at_most(self) -> float:
        """With a confidence of 95 %, as far as the weights of so few runs are near enough to normal."""
        return self.chance + 1.645 * self.error


def likelihood_of(weights: list[float]) -> Likelihood:
    """The mean of the weights of two runs or more."""
    return Likelihood(float(np.mean(weights)), float(np.std(weights, ddof=1)) / math.sqrt(len(weights)))


def _noticed(kind: str, traffic: Traffic, luck: Luck) -> np.ndarray:
    """What a guard notices of each call: 1 if the event happened, else 0; of an amount, its score."""
    failed = luck.fault < traffic.errors
    if kind == "failed":
        return failed.astype(float)
    is_time = kind in ("slow", "latency")
    spread = traffic.latency_sd if is_time else traffic.cost_sd * math.sqrt(1.0 - traffic.known)
    above: np.ndarray = (luck.slow if is_time else luck.dear) + np.log(luck.level) / spread
    if kind in ("slow", "dear"):
        return (above > (SLOW if is_time else DEAR)) * 1.0
    scores: np.ndarray = np.clip(above / SPREADS, -1.0, 1.0)
    return np.where(failed, 0.0, scores)
