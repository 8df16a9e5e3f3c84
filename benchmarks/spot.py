"""How much of the time a pool of spot machines has what is wanted, and what that costs: weeks, in a few seconds.

The decisions are the product's own (`pilotlight_autoscaler.policy.spot`); the zones, the machines and the clock are
simulated. Four machines are wanted, of nine zones in three regions; one is ready 6.5 minutes after its launch; spot
costs 0.3 of what on demand costs. A zone takes all of its spot machines away when it runs out of them, with a notice
of 120 s, of 30 s, or none: then the machine is missed once it has been silent for `NODE_LOST_S`. A machine counts from
when it is ready until its notice, since a node that drains takes nothing new.

    python -m benchmarks.spot [--quick] [--seed N] [--days N] [--trace FILE]

`--trace` plays recorded availability in the place of the generator's. The file is CSV with a heading:

    zone        the zone's name, `region/zone` or any other
    start_s     seconds from the beginning of the recording: from then on machines could be had there
    end_s       until then: those that were there were taken away
    capacity    optional: the most machines that could be had at once; empty: any number

Rows of a zone must not overlap; a zone without rows has no machines. What is between its rows are its shortages.

The generator draws the zones' shortages (`ZoneWeather`), so that what plainer policies reach is about what they reached
on a recorded trace of nine zones over 45 days: four machines in the best zone 89.6 % of the time, in the zones of one
region 94.4 %, in all without a list of avoided zones 96.1 %, with it 97.4 %, with machines on demand beside it 98.3 %.

Figures: `capacity_share`, the least part of the time with as many machines as wanted, over the three notices;
`cost_ratio`, the most that it cost, with as many machines on demand all the time as 1. Bounds: 0.98 and 0.35.
"""

from __future__ import annotations

import argparse
import csv
import heapq
import itertools
import math
import random
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.report import arguments, finish, table
from pilotlight_autoscaler.observations.world import NODE_LOST_S
from pilotlight_autoscaler.policy.spot.avoided_zones import AvoidedZones
from pilotlight_autoscaler.policy.spot.capacity_goal import CapacityGoal
from pilotlight_autoscaler.policy.spot.spot_fleet import PoolInstance, plan_spot_fleet

WANTED = 4
START_S = 390.0
SPOT_PRICE = 0.3
DAY_S = 86_400.0
HOUR_S = 3_600.0
NOTICES_S: tuple[float | None, ...] = (120.0, 30.0, None)
VAIN_S = 60.0
"""After so long it is known that a zone had no machine for a launch."""
SEED = 56
QUICK_DAYS = 7.0


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Machines could be had in a zone, from one second to another."""

    start_s: float
    end_s: float
    capacity: int | None = None


Availability = Mapping[str, Sequence[Interval]]
"""By zone, in order."""


# -- where machines can be had ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ZoneWeather:
    """What the times to and between shortages are drawn from. Hours."""

    regions: int = 3
    zones: int = 3
    """Of each region."""
    calm: tuple[float, float] = (16.0, 34.0)
    """The mean time to a zone's next shortage; of each zone one between these."""
    short: float = 0.5
    """The mean of most shortages ..."""
    long: float = 8.0
    """... and of the others ..."""
    long_part: float = 0.4
    """... which are so many."""
    dark: float = 0.3
    """The mean time in a shortage until machines can be had again, but ..."""
    glimpse: float = 0.1
    """... for no longer than this, in the mean."""
    shared: float = 60.0
    """The mean time between shortages of a whole region, which meet each of its zones within half an hour."""


def drawn_availability(seed: int, days: float, weather: ZoneWeather | None = None) -> Availability:
    """The zones' availability by a seed: the same for the same seed."""
    weather = weather or ZoneWeather()
    rng, end_s = random.Random(seed), days * DAY_S
    found: dict[str, Sequence[Interval]] = {}
    for region in range(weather.regions):
        shared = list(_instants(rng, weather.shared, end_s))
        for zone in range(weather.zones):
            calm = rng.uniform(*weather.calm)
            begins = [*_instants(rng, calm, end_s), *(at + rng.uniform(0.0, HOUR_S / 2) for at in shared)]
            shortages = [(at, at + _length_s(rng, weather)) for at in begins]
            gaps = sorted(gap for shortage in shortages for gap in _gaps(rng, weather, shortage))
            found[f"region-{region + 1}/zone-{'abc'[zone]}"] = tuple(_between(gaps, end_s))
    return found


def _instants(rng: random.Random, mean_h: float, end_s: float) -> Iterable[float]:
    at = rng.expovariate(1.0 / (mean_h * HOUR_S))
    while at < end_s:
        yield at
        at += rng.expovariate(1.0 / (mean_h * HOUR_S))


def _length_s(rng: random.Random, weather: ZoneWeather) -> float:
    mean_h = weather.long if rng.random() < weather.long_part else weather.short
    return rng.expovariate(1.0 / (mean_h * HOUR_S))


def _gaps(rng: random.Random, weather: ZoneWeather, shortage: tuple[float, float]) -> Iterable[tuple[float, float]]:
    """The times within a shortage in which there is no machine."""
    at, ends = shortage
    while at < ends:
        until = min(ends, at + rng.expovariate(1.0 / (weather.dark * HOUR_S)))
        yield at, until
        at = until + rng.expovariate(1.0 / (weather.glimpse * HOUR_S))


def _between(shortages: Sequence[tuple[float, float]], end_s: float) -> Iterable[Interval]:
    at = 0.0
    for begins, ends in shortages:
        if begins > at:
            yield Interval(start_s=at, end_s=begins)
        at = max(at, ends)
    if at < end_s:
        yield Interval(start_s=at, end_s=math.inf)


class BadTrace(ValueError):
    """A recording that cannot be played; the line is named."""


def read_trace(path: Path) -> Availability:
    """A recording, as the heading of this file has it.

    Raises:
        BadTrace: naming the line and what was expected. OSError
    """
    found: dict[str, list[Interval]] = {}
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        if missing := {"zone", "start_s", "end_s"} - set(rows.fieldnames or ()):
            raise BadTrace(f"{path}: the heading lacks {', '.join(sorted(missing))}")
        for number, row in enumerate(rows, start=2):
            try:
                capacity = int(row["capacity"]) if row.get("capacity") else None
                interval = Interval(start_s=float(row["start_s"]), end_s=float(row["end_s"]), capacity=capacity)
            except (TypeError, ValueError):
                raise BadTrace(f"{path}:{number}: expected numbers of seconds, and of machines, got {row}") from None
            if not 0.0 <= interval.start_s < interval.end_s or not row["zone"]:
                raise BadTrace(f"{path}:{number}: expected a zone, and 0 <= start_s < end_s, got {row}")
            found.setdefault(row["zone"], []).append(interval)
    for zone, intervals in found.items():
        intervals.sort(key=lambda each: each.start_s)
        if any(one.end_s > other.start_s for one, other in itertools.pairwise(intervals)):
            raise BadTrace(f"{path}: rows of the zone {zone} overlap")
    if not found:
        raise BadTrace(f"{path}: there are no rows")
    return found


def duration_s(trace: Availability) -> float:
    """The length of a recording: to its last row's end."""
    return max(each.end_s for intervals in trace.values() for each in intervals)


# -- what is played ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is wanted, and by which of the rules."""

    wanted: int = WANTED
    start_s: float = START_S
    spot_price: float = SPOT_PRICE
    notice_s: float | None = 120.0
    avoids: bool = True
    """Zones that have preempted; those that had no machine for a launch are avoided anyway."""
    has_goal: bool = True
    """Whether a spare stands by while the pool falls short of its goal."""
    falls_back: bool = True
    spares: int = 0


@dataclass(kw_only=True)
class Machine:
    seen: PoolInstance
    """As the policy knows it."""
    launched_at: float
    is_gone: bool = False
    """Taken away, or never there, whether that is known already or not."""


@dataclass(frozen=True, kw_only=True)
class SpotResult:
    capacity_share: float
    """The part of the time with as many machines as wanted."""
    cost_ratio: float
    """With as many on demand as 1."""
    preemptions: int
    failed_launches: int


@dataclass(kw_only=True)
class SpotRun:
    """One pool over one availability. Events are (instant, order, kind, zone or machine)."""

    trace: Availability
    setting: Setting
    end_s: float
    machines: dict[str, Machine] = field(default_factory=dict)
    avoided: AvoidedZones = field(default_factory=AvoidedZones)
    goal: CapacityGoal = field(default_factory=CapacityGoal)
    at: float = 0.0
    met_s: float = 0.0
    cost_s: float = 0.0
    preemptions: int = 0
    failed: int = 0
    _events: list[tuple[float, int, str, str]] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)

    def result(self) -> SpotResult:
        """Play it from its beginning to its end."""
        for zone, intervals in self.trace.items():
            for each in intervals:
                if each.end_s < self.end_s:
                    self._push(each.end_s, "taken", zone)
                    if self.setting.notice_s is not None:
                        self._push(max(each.start_s, each.end_s - self.setting.notice_s), "noticed", zone)
        self._push(0.0, "look", "")
        while self._events and self._events[0][0] < self.end_s:
            at = self._events[0][0]
            self._pass_time(at)
            while self._events and self._events[0][0] == at:
                _, _, kind, name = heapq.heappop(self._events)
                getattr(self, f"_on_{kind}")(name)
            self._decide()
        self._pass_time(self.end_s)
        whole = self.end_s
        return SpotResult(
            capacity_share=self.met_s / whole,
            cost_ratio=self.cost_s / (self.setting.wanted * whole),
            preemptions=self.preemptions,
            failed_launches=self.failed,
        )

    def _push(self, at: float, kind: str, name: str) -> None:
        heapq.heappush(self._events, (at, next(self._order), kind, name))

    def _pass_time(self, at: float) -> None:
        elapsed, self.at = at - self.at, at
        serving = sum(
            one.seen.is_ready and not one.seen.is_leaving and not one.is_gone for one in self.machines.values()
        )
        self.met_s += elapsed if serving >= self.setting.wanted else 0.0
        self.goal.note(at, is_short=serving < self.setting.wanted)
        prices = (
            self.setting.spot_price if one.seen.is_spot else 1.0 for one in self.machines.values() if not one.is_gone
        )
        self.cost_s += elapsed * sum(prices)

    # -- what happens ----------------------------------------------------------------------------------------------

    def _on_look(self, _: str) -> None:
        pass

    def _on_ready(self, name: str) -> None:
        machine = self.machines.get(name)
        if machine is not None and not machine.is_gone:
            machine.seen = replace(machine.seen, is_ready=True)
            if machine.seen.is_spot:
                self.avoided.zone_served(machine.seen.zone, machine.launched_at)

    def _on_noticed(self, zone: str) -> None:
        for machine in self._there(zone):
            self._leave(machine)

    def _on_taken(self, zone: str) -> None:
        for machine in self._there(zone):
            machine.is_gone = True
            self.preemptions += 1
            if machine.seen.is_leaving:
                del self.machines[machine.seen.name]
            else:
                self._push(self.at + NODE_LOST_S, "missed", machine.seen.name)

    def _on_missed(self, name: str) -> None:
        if (machine := self.machines.pop(name, None)) is not None:
            self._leave(machine)

    def _on_vain(self, name: str) -> None:
        if (machine := self.machines.pop(name, None)) is not None:
            self.failed += 1
            self.avoided.zone_preempted(machine.seen.zone, self.at)

    def _there(self, zone: str) -> list[Machine]:
        return [one for one in self.machines.values() if one.seen.is_spot and one.seen.zone == zone and not one.is_gone]

    def _leave(self, machine: Machine) -> None:
        machine.seen = replace(machine.seen, is_leaving=True)
        if self.setting.avoids:
            self.avoided.zone_preempted(machine.seen.zone, self.at)

    # -- what is done ----------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        plan = plan_spot_fleet(
            self.setting.wanted,
            [one.seen for one in self.machines.values()],
            tuple(self.trace),
            self.avoided.avoided(self.trace, self.at),
            spares=self.setting.spares + (self.goal.spares if self.setting.has_goal else 0),
            may_fall_back=self.setting.falls_back,
        )
        for name in plan.ends:
            del self.machines[name]
        for _ in range(plan.on_demand):
            self._launch("on demand", is_spot=False)
        for zone in plan.spot:
            self._launch(zone, is_spot=True)

    def _has_room(self, zone: str) -> bool:
        intervals = self.trace[zone]
        index = bisect_right(intervals, self.at, key=lambda each: each.start_s) - 1
        if index < 0 or self.at >= intervals[index].end_s:
            return False
        capacity = intervals[index].capacity
        return capacity is None or len(self._there(zone)) < capacity

    def _launch(self, zone: str, *, is_spot: bool) -> None:
        name = f"machine-{next(self._order)}"
        is_vain = is_spot and not self._has_room(zone)
        seen = PoolInstance(name=name, zone=zone, is_spot=is_spot, is_ready=False)
        self.machines[name] = Machine(seen=seen, launched_at=self.at, is_gone=is_vain)
        if is_vain:
            self._push(self.at + VAIN_S, "vain", name)
        else:
            self._push(self.at + self.setting.start_s, "ready", name)


def play(trace: Availability, setting: Setting, end_s: float) -> SpotResult:
    """What a pool has and costs over an availability."""
    return SpotRun(trace=trace, setting=setting, end_s=end_s).result()


def some_zones(trace: Availability, zones: Iterable[str]) -> Availability:
    return {zone: trace[zone] for zone in zones}


# -- the command ---------------------------------------------------------------------------------------------------


def plain_policies(trace: Availability, end_s: float) -> list[tuple[str, SpotResult]]:
    """What plainer policies reach, without notices: the best single zone, the best region, all zones."""
    plain = Setting(notice_s=None, falls_back=False, has_goal=False)
    regions: dict[str, list[str]] = {}
    for zone in trace:
        regions.setdefault(zone.rpartition("/")[0], []).append(zone)

    def best(choices: Iterable[Sequence[str]]) -> SpotResult:
        results = [play(some_zones(trace, zones), plain, end_s) for zones in choices]
        return max(results, key=lambda result: result.capacity_share)

    return [
        ("the best zone", best([[zone] for zone in trace])),
        ("the best region", best(regions.values())),
        ("all zones, none avoided", play(trace, replace(plain, avoids=False), end_s)),
        ("all zones", play(trace, plain, end_s)),
        ("all zones, and on demand", play(trace, replace(plain, falls_back=True), end_s)),
        ("the same with a spare at all times", play(trace, replace(plain, falls_back=True, spares=1), end_s)),
    ]


def main() -> None:
    """Play the pool with each notice, and the plainer policies beside it."""
    parser = _parser()
    options = parser.parse_args()  # plain Python does: nothing is timed
    days = QUICK_DAYS if options.quick else options.days
    try:
        trace = read_trace(options.trace) if options.trace else drawn_availability(options.seed, days)
    except (BadTrace, OSError, UnicodeDecodeError) as error:
        parser.error(str(error))
    end_s = duration_s(trace) if options.trace else days * DAY_S
    rows = [(f"notice of {notice:g} s" if notice else "no notice", play(trace, Setting(notice_s=notice), end_s))
            for notice in NOTICES_S]  # fmt: skip
    columns = ("policy", "at target %", "cost", "preemptions", "launches in vain")
    shown = [
        (name, 100.0 * each.capacity_share, each.cost_ratio, each.preemptions, each.failed_launches)
        for name, each in (*rows, *plain_policies(trace, end_s))
    ]
    table(f"{WANTED} machines of {len(trace)} zones over {end_s / DAY_S:.0f} days", columns, shown)
    finish(
        "spot",
        {
            "capacity_share": min(each.capacity_share for _, each in rows),
            "cost_ratio": max(each.cost_ratio for _, each in rows),
            "days": end_s / DAY_S,
        },
    )


def _parser() -> argparse.ArgumentParser:
    parser = arguments("spot", "How much of the time spot machines are there, and what they cost.")
    parser.add_argument("--seed", type=int, default=SEED, help="of the zones' shortages")
    parser.add_argument("--days", type=float, default=45.0, help="how long is played")
    parser.add_argument("--trace", type=Path, help="recorded availability (CSV: zone,start_s,end_s[,capacity])")
    return parser


if __name__ == "__main__":
    main()
