"""What has changed at the homes since the last look, as events. Pure: time is an argument, in unix seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilotlight_core.model.messages.logs import EventKind, PlatformEvent
from pilotlight_core.model.messages.scheduling import BreakerReport
from pilotlight_gateway.home.slowdown import SlowFlow

OPEN = "open"
FOLLOWED = 5_000
"""Breakers and flows that are known to be open or slow; of more the beginning is told again."""
BreakerKey = tuple[str, str, str]
SlowKey = tuple[str, str, str]


class PressureEvents:
    """Remembers what was open, slow and shed."""

    def __init__(self) -> None:
        self._open: dict[BreakerKey, str] = {}
        """Each with its function."""
        self._slow: dict[SlowKey, SlowFlow] = {}
        self._shed: dict[int, int] = {}

    def changes(
        self,
        breakers: Iterable[BreakerReport],
        slow: Iterable[SlowFlow],
        shed: Mapping[int, int],
        functions: Mapping[str, str],
        at: float,
    ) -> list[PlatformEvent]:
        """What is new. `functions` are the functions of versions, as far as they are known."""
        return [
            *self._breakers(breakers, functions, at), *self._slowed(slow, at), *self._given_way(shed, at),
        ]  # fmt: skip

    def _breakers(
        self, reports: Iterable[BreakerReport], functions: Mapping[str, str], at: float
    ) -> list[PlatformEvent]:
        opened = {(one.version, one.container, one.tenant): one for one in reports if one.state == OPEN}
        now = {key: functions.get(one.version, "") for key, one in opened.items()}
        found = [
            PlatformEvent(
                at=at, kind=EventKind.BREAKER_OPENED, tenant=_owner(now[key]), function=now[key],
                says=f"The breaker of {_named(key)} opened after {one.failures} failures: no "
                f"calls go there for {one.retry_after:.0f} s.",
                facts={"version": one.version, "container": one.container, "failures": one.failures},
                operator={"caller": one.tenant} if one.tenant else {},
            )
            for key, one in opened.items() if key not in self._open
        ]  # fmt: skip
        found += [
            PlatformEvent(
                at=at, kind=EventKind.BREAKER_CLOSED, tenant=_owner(function), function=function,
                says=f"The breaker of {_named(key)} lets calls through again.",
                facts={"version": key[0], "container": key[1]}, operator={"caller": key[2]} if key[2] else {},
            )
            for key, function in self._open.items() if key not in now
        ]  # fmt: skip
        self._open = dict(list(now.items())[:FOLLOWED])
        return found

    def _slowed(self, slow: Iterable[SlowFlow], at: float) -> list[PlatformEvent]:
        worst = sorted(slow, key=lambda one: -one.slowdown)
        now = {(one.version, one.tenant, one.priority): one for one in worst}
        found = [
            PlatformEvent(
                at=at, kind=EventKind.SLOWED, tenant=one.tenant, function=one.function,
                says=f"Calls to {one.function} take {one.slowdown:.1f} times as long as alone: others hold its slots.",
                facts={"version": one.version, "class": one.priority, "slowdown": round(one.slowdown, 2),
                       "calls": one.calls},
                operator={"neighbour": one.neighbour},
            )
            for key, one in now.items() if key not in self._slow
        ]  # fmt: skip
        found += [
            PlatformEvent(
                at=at, kind=EventKind.RECOVERED, tenant=one.tenant, function=one.function,
                says=f"Calls to {one.function} are not slowed down any more.", facts={"class": one.priority},
            )
            for key, one in self._slow.items() if key not in now
        ]  # fmt: skip
        self._slow = dict(list(now.items())[:FOLLOWED])
        return found

    def _given_way(self, shed: Mapping[int, int], at: float) -> list[PlatformEvent]:
        more = {rank: count - self._shed.get(rank, 0) for rank, count in shed.items()}
        self._shed = dict(shed)
        return [
            PlatformEvent(
                at=at, kind=EventKind.SHED, says=f"{count} queued calls of tier rank {rank} gave way to higher tiers.",
                facts={"calls": count, "tier_rank": rank},
            )
            for rank, count in sorted(more.items()) if count > 0
        ]  # fmt: skip


def _owner(function: str) -> str:
    return function.partition(":")[0]


def _named(key: BreakerKey) -> str:
    version, container, caller = key
    if caller:
        return f"one tenant's calls to version {version}"
    return f"container {container}" if container else f"version {version}"
