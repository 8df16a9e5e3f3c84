"""What the controller's forecasts would have cost over recorded minutes, with a window of no time. Pure.

It is charged as `policy.prediction.shadow_pool` charges: a minute of idle time for each container that was there in
vain, half a minute for one that was used, and a cold start for each that was missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pilotlight_autoscaler.policy.prediction.call_chances import LEVELS, CallChances, least_odds
from pilotlight_autoscaler.policy.prediction.forecast import HoltForecast
from pilotlight_autoscaler.policy.prediction.idle_times import IdleTimes
from pilotlight_autoscaler.policy.prediction.method_set import standard_methods
from pilotlight_autoscaler.policy.prediction.minute_methods import LikelyWarmth, MinuteMethod
from pilotlight_autoscaler.policy.prediction.prior_costs import prior_of_likely
from pilotlight_autoscaler.policy.prediction.shadow_pool import LIKELY, MethodChoice, ShadowPool
from pilotlight_autoscaler.simulator.minutes.minute_model import KeepAliveCost


class _Charge:
    """The cost of one policy, over functions."""

    def __init__(self) -> None:
        self.idle_minutes = 0.0
        self.cold = self.starts = 0
        self._there = 0

    def begin(self) -> None:
        """Another function, or a minute with nothing."""
        self._there = 0

    def add(self, level: int, needed: int) -> None:
        """A minute, at whose beginning `level` containers were there."""
        used, there = min(level, needed), max(level, needed)
        self.idle_minutes += level - used + used / 2
        self.cold += needed - used
        self.starts += max(0, level - self._there) + needed - used
        self._there = there

    def total(self) -> KeepAliveCost:
        """The sum."""
        return KeepAliveCost(self.cold, self.idle_minutes, self.starts)


class _SharedWarmth(LikelyWarmth):
    """Chances that another one observes."""

    def observe(self, needed: int) -> None:
        """The other one does."""


class _ChosenMethods:
    """One function's methods, charged once, and a choice among them for each of several worths."""

    def __init__(self, worths: Sequence[float]) -> None:
        self._chances = CallChances([IdleTimes() for _ in range(LEVELS)])
        standard = standard_methods(LikelyWarmth(self._chances, 0.0), 0.0, HoltForecast())
        common = {name: prior for name, prior in standard.priors.items() if name != LIKELY}
        likely = {f"{LIKELY} {worth:g}": worth for worth in worths}
        self._common = tuple(common)
        self._pool = ShadowPool({name: standard.methods[name] for name in common}, 0)
        self._likely = ShadowPool({name: _SharedWarmth(self._chances, worth) for name, worth in likely.items()}, 0)
        self._least = least_odds(max(worths))
        self._none = dict.fromkeys(likely, 0)
        self._worths = worths
        self._choices = [
            MethodChoice({**common, name: prior_of_likely(worth)}, likely=name) for name, worth in likely.items()
        ]
        self._minutes = 0
        self._choose()

    def observe(self, needed: int) -> list[int]:
        """A minute ended; what was there in it by each choice."""
        levels = dict(zip(self._common, self._pool.observe(needed), strict=True))
        if needed or self._chances.warm(self._least):
            levels |= zip(self._none, self._likely.observe(needed), strict=True)
        else:
            self._likely.end_idle_minute()
            levels |= self._none
        self._chances.observe(needed)
        there = [levels[choice.chosen] for choice in self._choices]
        self._minutes += 1
        if needed and self._choices[0].is_due(self._minutes):
            self._choose()
        return there

    def _choose(self) -> None:
        costs = self._pool.costs | self._likely.costs
        for choice, worth in zip(self._choices, self._worths, strict=True):
            choice.choose(costs, worth, self._minutes)


def chosen_costs(functions: Iterable[Sequence[int]], worths: Sequence[float]) -> list[KeepAliveCost]:
    """What the chosen methods cost for each worth of a cold start (in idle minutes), as a `FunctionMemory` chooses.

    Args:
        functions: containers that each needed in each minute.
    """
    charges = [_Charge() for _ in worths]
    for needed in functions:
        chosen = _ChosenMethods(worths)
        for charge in charges:
            charge.begin()
        for count in needed:
            there = chosen.observe(count)
            if count or any(there):
                for charge, level in zip(charges, there, strict=True):
                    charge.add(level, count)
            else:
                for charge in charges:
                    charge.begin()
    return [charge.total() for charge in charges]


def method_costs(
    functions: Iterable[Sequence[int]], methods: Mapping[str, Callable[[], MinuteMethod]]
) -> dict[str, KeepAliveCost]:
    """What each of the methods costs alone."""
    charges = {name: _Charge() for name in methods}
    for needed in functions:
        for name, new in methods.items():
            method, charge = new(), charges[name]
            charge.begin()
            for count in needed:
                charge.add(method.level(), count)
                method.observe(count)
    return {name: charge.total() for name, charge in charges.items()}


def summed(costs: Iterable[KeepAliveCost]) -> KeepAliveCost:
    """Of several functions."""
    cold, idle_minutes, starts = map(sum, zip(*costs, strict=True))
    return KeepAliveCost(cold, idle_minutes, starts)
