"""Strata of a function's calls: a method on one type of GPU, there a class of sizes, and there a large tenant.

A call is measured against the finest stratum of which enough is known. What is known comes from the old version's last
calls before the rollout, and then stays; of a stratum that had too few of them, from the old version's calls so far.
A call that is bet on is scored first, and learnt from then.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import msgspec

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_gateway.judging.usual.usual_amounts import UsualAmount, size_class_of, size_of, usual_amount

LEAST_CALLS = 50
"""Without so many of a stratum's calls there are no bets."""
FINE_CALLS = 200
"""Without so many a finer stratum says less than the one above it; with so many of a history it is settled."""
HISTORY_CALLS = 2_000
"""The last ones of a history."""
LEARNT_CALLS = 800
"""Of the old version's calls so far; then a stratum is settled."""
REFITTED_AT = frozenset({50, 100, 200, 400, LEARNT_CALLS})
MOST_STRATA = 64
MOST_SAMPLES = 6_400
"""Of all strata that are not settled: evidence is written often."""
SLOW_PART, DEAR_PART = 0.95, 0.99


class Stratum(msgspec.Struct):
    """What is known of one."""

    calls: int = 0
    is_settled: bool = False
    latency: UsualAmount | None = None
    cost: UsualAmount | None = None
    """None also of functions that use no GPU."""
    sizes: list[float] = []
    latencies: list[float] = []
    costs: list[float] = []
    """Logarithms; empty when it is settled."""

    def update(self, *, settle: bool) -> None:
        """Work out what is usual, of the calls so far; `settle`: for good."""
        self.latency = usual_amount(self.sizes, self.latencies, SLOW_PART)
        if len(self.costs) == len(self.sizes):
            self.cost = usual_amount(self.sizes, self.costs, DEAR_PART)
        if settle:
            self.is_settled = True
            self.sizes, self.latencies, self.costs = [], [], []


class Reading(NamedTuple):
    """What a call took, as logarithms over what is expected; and that, in milliseconds."""

    usual_latency: UsualAmount
    latency: float
    usual_ms: float
    usual_cost: UsualAmount | None
    """None: it used no GPU, or what is usual of it is not known."""
    cost: float
    usual_cost_ms: float


class Strata(msgspec.Struct):
    """Those of one function, by name."""

    known: dict[str, Stratum] = {}
    samples: int = 0
    most: int = MOST_SAMPLES
    """Samples that are kept: functions of one rollout share what there is room for."""

    def learn(self, call: ComparedCall) -> None:
        """A call of the old version ended well, in a warm container."""
        if self.samples >= self.most:
            return
        for name in names_of(call)[:0:-1]:
            stratum = self._of(name)
            if stratum is None or stratum.is_settled:
                continue
            self._note(stratum, call)
            if stratum.calls in REFITTED_AT:
                self._fit(stratum, settle=stratum.calls >= LEARNT_CALLS)

    def settle(self, history: list[ComparedCall]) -> None:
        """What is known before the rollout, of the old version's last calls in their order."""
        last = history[-HISTORY_CALLS:]
        for level in (2, 1, 0):  # the coarse ones first: there is not room for any number
            for call in last:
                if (stratum := self._of(names_of(call)[level])) is not None:
                    self._note(stratum, call)
            for name, stratum in list(self.known.items()):
                self._settle(name, stratum)

    def _settle(self, name: str, stratum: Stratum) -> None:
        if stratum.is_settled:
            return
        if stratum.calls >= FINE_CALLS:
            self._fit(stratum, settle=True)
        elif name.count("|") > 1:  # a tenant with few calls is among all others
            self.samples -= len(stratum.sizes)
            del self.known[name]
        elif stratum.calls >= LEAST_CALLS:
            self._fit(stratum, settle=False)

    def of(self, call: ComparedCall) -> Stratum | None:
        """What a call is measured against; None: too little is known."""
        fine, size, whole = names_of(call)
        known = self.known
        if (stratum := known.get(fine)) is not None and stratum.calls >= FINE_CALLS and stratum.latency is not None:
            return stratum
        if (stratum := known.get(size)) is not None and stratum.calls >= FINE_CALLS and stratum.latency is not None:
            return stratum
        return stratum if (stratum := known.get(whole)) is not None and stratum.latency is not None else None

    def usual_times(self) -> dict[str, UsualAmount]:
        """What times are measured against, by the names of strata: `of` finds the first of a call's."""
        return {
            name: stratum.latency
            for name, stratum in self.known.items()
            if stratum.latency is not None and (stratum.calls >= FINE_CALLS or "|" not in name)
        }

    def measure(self, call: ComparedCall) -> Reading | None:
        """How far what a call took is from what is usual; None: too little is known."""
        stratum = self.of(call)
        if stratum is None or (usual := stratum.latency) is None or call.execute_ms <= 0.0:
            return None
        size = size_of(call)
        latency = usual.residual(size, call.execute_ms)
        usual_ms = call.execute_ms * math.exp(-latency)
        if (cost := stratum.cost) is None or call.gpu_ns <= 0:
            return Reading(usual, latency, usual_ms, None, 0.0, 1.0)
        residual = cost.residual(size, call.gpu_ns)
        return Reading(usual, latency, usual_ms, cost, residual, call.gpu_ns * math.exp(-residual) / 1e6)

    def _of(self, name: str) -> Stratum | None:
        stratum = self.known.get(name)
        if stratum is None and len(self.known) < MOST_STRATA:
            stratum = self.known[name] = Stratum()
        return stratum

    def _note(self, stratum: Stratum, call: ComparedCall) -> None:
        stratum.calls += 1
        stratum.sizes.append(size_of(call))
        stratum.latencies.append(math.log(call.execute_ms))
        if call.gpu_ns > 0:
            stratum.costs.append(math.log(call.gpu_ns))
        self.samples += 1

    def _fit(self, stratum: Stratum, *, settle: bool) -> None:
        before = len(stratum.sizes)
        stratum.update(settle=settle)
        self.samples -= before - len(stratum.sizes)


def names_of(call: ComparedCall) -> tuple[str, str, str]:
    """A call's strata, the finest first."""
    return _names(call.method, call.gpu_type, size_class_of(size_of(call)), call.tenant)


@lru_cache(maxsize=4_096)
def _names(method: str, gpu_type: str, size_class: int, tenant: str) -> tuple[str, str, str]:
    whole = f"{method} {gpu_type}"
    size = f"{whole}|{size_class}"
    return f"{size}|{tenant}", size, whole


def is_measured(call: ComparedCall) -> bool:
    """Whether what a call took says how fast its version is: it ended well."""
    return not call.code and call.execute_ms > 0.0
