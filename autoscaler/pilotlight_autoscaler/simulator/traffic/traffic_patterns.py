"""Traffic that nobody recorded, drawn from a seed: what functions usually look like, by name. Pure.

    diurnal   Poisson calls whose rate follows the hour of the day
    bursty    hardly any calls, then minutes of many
    periodic  the same few calls each so many minutes
    dying     Poisson calls that become fewer, and end
    reborn    Poisson calls, hours without any, and calls again

How often functions are called differs by powers of ten, as it does on other platforms (Shahrad et al., Serverless in
the Wild, USENIX ATC 2020, section 3.3): the logarithm of the rate is normal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from pilotlight_autoscaler.simulator.traffic.function_traffic import CountedCalls

DAY_MINUTES = 1_440
PERIODS = (1, 5, 10, 15, 30, 60, 120, 360)
"""Minutes between the calls of periodic functions."""
SPREAD = 1.8
"""Standard deviation of the natural logarithm of the rate: a tenth of the functions has ten times the median."""
MOST_IN_A_MINUTE = 10**7
Rates = Callable[[int], float]
"""Minute -> calls per minute."""


@dataclass(frozen=True, kw_only=True)
class PatternMix:
    """How much traffic to draw: `parts` are weights by pattern, `calls_per_s` the mean of all functions together."""

    functions: int
    minutes: int
    calls_per_s: float
    seed: int = 0
    parts: Mapping[str, float]


def draw_traffic(mix: PatternMix, duration_s: Callable[[str], float]) -> dict[str, CountedCalls]:
    """The traffic of each function; its name says its pattern. `duration_s` is by name."""
    dice = Random(f"{mix.seed}")
    patterns = dice.choices(sorted(mix.parts), [mix.parts[name] for name in sorted(mix.parts)], k=mix.functions)
    weights = [math.exp(dice.gauss(0.0, SPREAD)) for _ in patterns]
    scale = 60.0 * mix.calls_per_s / sum(weights)
    found = {}
    for number, (pattern, weight) in enumerate(zip(patterns, weights, strict=True)):
        name = f"{pattern}-{number:04}"
        own = Random(f"{mix.seed}/{name}")
        counts = PATTERNS[pattern](weight * scale, mix.minutes, own)
        found[name] = CountedCalls(counts, duration_s(name), f"{mix.seed}/{name}/calls")
    return found


def _diurnal(mean: float, minutes: int, dice: Random) -> dict[int, int]:
    depth, peak = dice.uniform(0.4, 0.95), dice.gauss(14 * 60, 120)
    return _poisson(minutes, lambda m: mean * (1 + depth * math.cos(2 * math.pi * (m - peak) / DAY_MINUTES)), dice)


def _bursty(mean: float, minutes: int, dice: Random) -> dict[int, int]:
    """A tenth of the calls come evenly, the others in bursts of 2 to 20 minutes, each some hours after the last."""
    rates = [mean * 0.1] * minutes
    at, gap = 0, dice.uniform(60, 480)
    while (at := at + 1 + int(dice.expovariate(1 / gap))) < minutes:
        lasting = dice.randint(2, 20)
        for minute in range(at, min(minutes, at + lasting)):
            rates[minute] += mean * 0.9 * gap / 11
        at += lasting
    return _poisson(minutes, rates.__getitem__, dice)


def _periodic(mean: float, minutes: int, dice: Random) -> dict[int, int]:
    period = dice.choice(PERIODS)
    calls, phase = max(1, round(mean * period)), dice.randrange(period)
    return dict.fromkeys(range(phase, minutes, period), min(calls, MOST_IN_A_MINUTE))


def _dying(mean: float, minutes: int, dice: Random) -> dict[int, int]:
    end = dice.uniform(0.2, 0.9) * minutes
    return _poisson(minutes, lambda m: 2 * mean * minutes / end * max(0.0, 1 - m / end), dice)


def _reborn(mean: float, minutes: int, dice: Random) -> dict[int, int]:
    gone, back = sorted(dice.uniform(0.1, 0.9) * minutes for _ in range(2))
    return _poisson(minutes, lambda m: 0.0 if gone <= m < back else mean * minutes / (minutes - back + gone), dice)


PATTERNS: Mapping[str, Callable[[float, int, Random], dict[int, int]]] = {
    "diurnal": _diurnal,
    "bursty": _bursty,
    "periodic": _periodic,
    "dying": _dying,
    "reborn": _reborn,
}


def _poisson(minutes: int, rates: Rates, dice: Random) -> dict[int, int]:
    drawn = ((minute, draw_poisson(dice, min(rates(minute), MOST_IN_A_MINUTE))) for minute in range(minutes))
    return {minute: count for minute, count in drawn if count}


def draw_poisson(dice: Random, mean: float) -> int:
    """A count with this mean; above 30 by the normal distribution."""
    if mean <= 0:
        return 0
    if mean > 30:
        return max(0, round(dice.gauss(mean, math.sqrt(mean))))
    count, left = 0, dice.random()
    least = math.exp(-mean)
    while left > least:
        count += 1
        left *= dice.random()
    return count


def draw_binomial(dice: Random, tries: int, chance: float) -> int:
    """How many of so many tries succeed; by the normal distribution if many do and many do not."""
    if tries <= 0 or chance <= 0.0:
        return 0
    if chance >= 1.0:
        return tries
    mean = tries * chance
    spread = mean * (1.0 - chance)
    if spread > 10.0:
        return min(tries, max(0, round(dice.gauss(mean, math.sqrt(spread)))))
    if tries <= 20:
        draw = dice.random
        return sum([draw() < chance for _ in range(tries)])
    if chance > 0.5:
        return tries - min(tries, draw_poisson(dice, tries - mean))
    return min(tries, draw_poisson(dice, mean))


def parts_of_mix(words: Sequence[str]) -> dict[str, float]:
    """The weights of patterns in words such as `diurnal=3` or `bursty`.

    Raises:
        ValueError: naming the word, and what was expected.
    """
    parts: dict[str, float] = {}
    for word in words:
        name, _, weight = word.partition("=")
        try:
            parts[name] = float(weight or 1)
        except ValueError:
            parts[name] = math.nan
        if name not in PATTERNS or not 0 < parts[name] < math.inf:
            raise ValueError(f"{word!r} is no pattern: expected such as diurnal=3, of {', '.join(PATTERNS)}")
    return parts
