"""How many calls a container of an engine takes, so that the pace of its tokens holds. Pure.

While tokens come more slowly than `slo=SLO(itl_ms=)` allows, it takes none beyond those that it holds: they wait at
their home, or go elsewhere. Then it takes some more with each word of its engine, until it takes all again. A container
that holds none takes one in any case, so nothing that an engine tells shuts it for good.
"""

from __future__ import annotations

from pilotlight_core.model.messages.engine_report import EngineReport

GROWS_BY = 8
"""Each word raises the limit by an eighth, and one at least: all at once would be too many again."""


class PaceGate:
    def __init__(self, itl_ms: float | None) -> None:
        self._itl_ms = itl_ms
        self._is_beyond = False
        self._limit: int | None = None
        """Of the calls that it takes after its pace was lost; None: as many as it can hold."""

    def note(self, report: EngineReport, *, held: int, most: int) -> bool:
        """Its engine tells how it is while it holds so many calls; whether it offers something else now."""
        if self._itl_ms is None:
            return False
        before = (self._is_beyond, self._limit)
        self._is_beyond = report.inter_token_ms > self._itl_ms
        if self._is_beyond:
            self._limit = max(1, held)
        elif self._limit is not None:
            limit = self._limit + max(1, self._limit // GROWS_BY)
            self._limit = limit if limit < most else None
        return (self._is_beyond, self._limit) != before

    def slots(self, *, held: int, most: int) -> int:
        """Calls that it takes, of `most`, those that it holds included."""
        if self._limit is None:
            return most
        return min(most, max(1, held) if self._is_beyond else max(self._limit, held))
