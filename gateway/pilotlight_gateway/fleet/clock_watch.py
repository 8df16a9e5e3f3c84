"""Whose clock differs from this gateway's: agents and other gateways say theirs with each report.

A message takes its time, so the clock it names is always a little behind: of the last few the least behind counts, and
a delay of some seconds, of a process or of the network, is no difference of clocks. Pure.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from enum import StrEnum
from typing import NamedTuple

from pilotlight_core.model.api.node_api import CLOCK_OFF_S

REPORTS = 5
"""The last of each that are compared; earlier than after so many nothing is said."""
KNOWN_AT_MOST = 20_000
FORGOTTEN_S = 60.0


class ClockKind(StrEnum):
    """Whose a clock is."""

    NODE = "node"
    GATEWAY = "gateway"


class ClockNews(NamedTuple):
    """A clock has begun or ceased to differ."""

    kind: ClockKind
    name: str
    ahead_s: float
    is_off: bool


class _Clock:
    """One that is heard of."""

    def __init__(self) -> None:
        self.behind = deque[float](maxlen=REPORTS)
        self.last = 0.0
        self.is_off = False

    @property
    def ahead_s(self) -> float | None:
        return max(self.behind) if len(self.behind) == REPORTS else None


class ClockWatch:
    """All that are heard of, by whose they are and their names. Instants are unix seconds, of this process's clock."""

    def __init__(self, most: int = KNOWN_AT_MOST) -> None:
        self._most = most
        self._clocks: OrderedDict[tuple[ClockKind, str], _Clock] = OrderedDict()

    def on_stamp(self, kind: ClockKind, name: str, said: float, at: float) -> ClockNews | None:
        """A report has come at `at` whose sender says that it is `said`; 0: it does not say."""
        if not said:
            return None
        clock = self._clocks.pop((kind, name), None) or _Clock()
        self._clocks[kind, name] = clock
        if len(self._clocks) > self._most:
            self._clocks.popitem(last=False)
        if abs(at - clock.last) > FORGOTTEN_S:  # it was away, or one of the two clocks was set
            clock.behind.clear()
        clock.last = at
        clock.behind.append(said - at)
        ahead = clock.ahead_s
        if ahead is None or (is_off := abs(ahead) > CLOCK_OFF_S) is clock.is_off:
            return None
        clock.is_off = is_off
        return ClockNews(kind, name, ahead, is_off)

    def ahead_s(self, kind: ClockKind, name: str) -> float | None:
        """By how many seconds a clock is ahead of this process's; None: not known."""
        clock = self._clocks.get((kind, name))
        return clock.ahead_s if clock is not None else None

    def off(self, kind: ClockKind, at: float) -> list[float]:
        """By how much those are ahead that differ by more than is tolerated, and are still heard of."""
        found = (clock for (of, _), clock in self._clocks.items() if of is kind and abs(at - clock.last) <= FORGOTTEN_S)
        return [clock.ahead_s for clock in found if clock.is_off and clock.ahead_s is not None]
