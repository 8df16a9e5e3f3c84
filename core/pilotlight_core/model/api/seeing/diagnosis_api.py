"""The bodies of the HTTP API about what bounds a function."""

from __future__ import annotations

from typing import Protocol

import msgspec

MORE_IS_BETTER = ("rate", "tokens_per_s")
"""Metrics of which more than was promised breaks no promise."""


class MetricPromise(Protocol):
    """What a metric will be."""

    @property
    def metric(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def at_most(self) -> bool: ...


def keeps_promise(promise: MetricPromise, now: float) -> bool:
    """Whether what is measured afterwards is what was promised."""
    most = promise.value + promise.tolerance * abs(promise.value)
    slack = 1.0 if promise.metric.endswith("_ms") else 0.01
    if promise.at_most:
        return now <= most + slack
    if promise.metric in MORE_IS_BETTER:
        return now >= promise.value * (1 - promise.tolerance)
    return abs(now - promise.value) <= max(promise.tolerance * abs(promise.value), slack if promise.value else 1e-9)


class CureInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do about a cause; the one to begin with is the first."""

    cost: str
    """caller (the caller's code), setting, gpu_time (a setting that costs time of devices), version (a new version of
    the function), moves (containers move), or hardware."""
    what: str
    command: str = ""
    """That does it; "": no single command does."""
    changes: dict[str, float] = {}
    """The same for programs: what is set, and its new value."""
    gain: float | None = None
    """The part of the trouble that it should remove, 0 to 1; null: that of the cause."""


class PromiseInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a metric of the function will be after the first cure, if the diagnosis is right."""

    metric: str
    value: float
    tolerance: float
    """Relative."""
    at_most: bool = False
    """Whether less keeps it, too."""


class CauseInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A cause that binds."""

    name: str
    sentence: str
    evidence: tuple[str, ...] = ()
    cures: tuple[CureInfo, ...] = ()
    promises: tuple[PromiseInfo, ...] = ()
    gain: float = 0.0
    """The part of its trouble that goes with the first cure, 0 to 1."""


class FunctionDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/functions/{ref}/diagnosis`: what bounds a function, or that nothing does."""

    function: str
    """`app.function@v7`."""
    window_s: float
    calls: int
    """That ended well in the window."""
    name: str
    """Of the cause; nothing, counters (they do not add up), few (calls), or unknown."""
    sentence: str
    trouble: str = ""
    """slow, failing, full, limited, rate or tokens; "": none."""
    confidence: float = 0.0
    """0 to 1."""
    gain: float = 0.0
    evidence: tuple[str, ...] = ()
    cures: tuple[CureInfo, ...] = ()
    promises: tuple[PromiseInfo, ...] = ()
    headroom: float | None = None
    """How many times the present load the nearest limit allows; null: not known, or something is bound."""
    next: CauseInfo | None = None
    """What bounds it once the first cure is made."""
    others: tuple[CauseInfo, ...] = ()
    """Of its other troubles."""
    metrics: dict[str, float] = {}
    """What the metrics of promises are now, and those beside them."""
    silent: tuple[str, ...] = ()
    """Gateways that did not answer, to tenants without their names: their part is missing."""


class DiagnosisLine(msgspec.Struct, frozen=True, kw_only=True):
    """One function in `GET /v1/diagnoses`."""

    function: str
    """`app.function@v7`."""
    name: str
    sentence: str
    calls: int
    confidence: float = 0.0
    first_cure: str = ""


class DiagnosisList(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/diagnoses`: a sentence for each function that had calls, those with something bound first."""

    window_s: float
    functions: tuple[DiagnosisLine, ...]
    left: int = 0
    """Further functions, with fewer calls."""
