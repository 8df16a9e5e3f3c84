"""Writes to the log whose clock differs."""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from pilotlight_core.model.api.node_api import CLOCK_OFF_S
from pilotlight_gateway.fleet.clock_watch import ClockKind, ClockWatch

log = structlog.get_logger(__name__)


def note_clock(
    clocks: ClockWatch, kind: ClockKind, name: str, said: float, wall: Callable[[], float] = time.time
) -> None:
    """A report has come just now, whose sender says that it is `said`."""
    news = clocks.on_stamp(kind, name, said, wall())
    if news is None:
        return
    if news.is_off:
        log.warning(
            "a clock differs from this gateway's", of=f"{kind} {name}", ahead_s=round(news.ahead_s, 3),
            tolerated_s=CLOCK_OFF_S,
        )  # fmt: skip
    else:
        log.info("a clock is as this gateway's again", of=f"{kind} {name}", ahead_s=round(news.ahead_s, 3))
