"""Who gets how much of a function that many tenants want: an elephant and its mice, over two gateways.

The function sleeps for a known time, so capacity is slots over service time, and the processors stay mostly idle. Each
tenant calls both gateways in turn; the function's home is one of them. The mice, with the stopwatch, are one process,
the elephant is another, so that the cost of making its calls is not in their times. Parts:

    a   64 slots of 320 ms (200/s): nine mice at 10/s each, alone and beside an elephant that offers 2,000/s
    b   8 slots of 20 ms: the same
    c   ten tenants backlogged, 20 ms to 2 s a call, equal weights; one comes late
        (d: how busy the slots were; e: how soon the late one had its share)
    w   nine tenants backlogged, weights 1:2:4
    f   8 slots of 20 ms: nine mice at 10/s each, alone and beside the 20,000 jobs that an elephant has submitted

The elephant's calls differ by up to a quarter from their mean (`--spread`), and its rate rises within the warm-up.
Calls that all take exactly as long fall into step: what is started in one turn of an event loop ends in one turn, so
slots that once met never part again, and nobody can be served in between, whatever the scheduler. Part (a) is therefore
run with calls of exactly 320 ms too, and both figures are given. A call of a mouse that fails fails the run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import msgspec

from benchmarks import report, scheduler
from benchmarks.crowd import Answered, Answers, Member, crowd, is_crowd
from benchmarks.keep_alive import Line
from tests.system.support.platform import Platform, platform
from tests.system.support.processes import descendants

MICE = tuple(f"mouse{n}" for n in range(9))
ELEPHANT = "elephant"
OWNER = "default"
"""Of the key that a platform begins with."""
MOUSE_RATE, ELEPHANT_RATE = 10.0, 2_000.0
SIZES_MS = (20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0)
SLOTS = 64
STEPS = 16
"""To either side of the mean."""
OUTSTANDING = 40
"""Calls that a backlogged tenant keeps waiting or running: alone they would nearly fill all slots."""
JOBS, SUBMITTERS = 20_000, 32
START_S = 1.0
"""For the processes of a crowd."""
PARTS = "abcwf"


@dataclass(frozen=True, kw_only=True)
class Length:
    """Of a run, in seconds and repetitions."""

    warm: float
    measured: float
    runs: int
    spread: float
    """Part of their mean by which the elephant's calls differ."""

    def around(self, ms: float) -> list[float]:
        """The sizes of the elephant's calls: their mean is `ms`."""
        return [ms * (1 + self.spread * step / STEPS) for step in range(-STEPS, STEPS + 1)] if self.spread else [ms]


@dataclass(kw_only=True)
class Bench:
    """The platform under load, and what was found run by run."""

    running: Platform
    keys: Mapping[str, str]
    length: Length
    figures: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    pictures: dict[str, tuple[Answers, float]] = field(default_factory=dict)
    """Title -> answers of the last run, and the instant at which its time begins."""

    def member(self, name: str, function: str, sizes_ms: Sequence[float], begins: float, until: float) -> Member:
        """A tenant that calls both gateways; it has no calls yet."""
        return Member(
            name=name,
            key=self.keys[name],
            urls=tuple(self.running.urls),
            ref=f"{OWNER}:sleeper.{function}",
            sizes_ms=tuple(sizes_ms),
            begins=begins,
            until=until,
            stages=name in MICE,
        )

    def find(self, **figures: float) -> None:
        """Note and show figures of one run."""
        for name, value in figures.items():
            self.figures[name].append(value)
            print(f"  {name} {value:.4g}", flush=True)


def main() -> None:
    """Run, print, finish."""
    options = _options()
    length = Length(warm=options.warm, measured=options.measured, runs=options.runs, spread=options.spread)
    names = (*MICE, ELEPHANT)
    options_of_up = ("--extra-gateways", "1", "--blanks", "0", "--cpu-slots", "2")
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), *options_of_up) as running:
        running.deploy("benchmarks/functions/sleeper.py")
        bench = Bench(running=running, keys={name: _tenant(running, name) for name in names}, length=length)
        for function in ("many", "few"):
            running.output(f"sleeper.{function}", ms=1.0)
        for _ in range(length.runs):
            _run(bench, options.parts)
    rows = [(name, *values) for name, values in bench.figures.items()]
    report.table("runs", ("figure", *(f"run {n + 1}" for n in range(length.runs))), rows)
    figures = {name: report.median(values) for name, values in bench.figures.items()}
    rounds, runs = (2_000, 1) if options.quick else (20_000, 5)
    figures["pick_push_us_10k"] = scheduler.median_of(partial(scheduler.pick_and_push, 10_000, rounds), runs)
    _draw(bench, options.plot)
    report.finish("fairness", figures)


def _options() -> argparse.Namespace:
    parser = report.arguments("fairness", (__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", default=PARTS, help=f"which of {PARTS}")
    parser.add_argument("--warm", type=float, help="seconds of warm-up (default: 10, quick: 3)")
    parser.add_argument("--measured", type=float, help="seconds that count (default: 60, quick: 8)")
    parser.add_argument("--runs", type=int, help="(default: 3, quick: 1)")
    parser.add_argument("--spread", type=float, default=0.25, help="of the elephant's calls around their mean")
    parser.add_argument("--plot", type=Path, default=Path("fairness.png"), help="where the picture goes")
    options = report.parsed(parser)
    defaults = (
        {"warm": 3.0, "measured": 8.0, "runs": 1} if options.quick else {"warm": 10.0, "measured": 60.0, "runs": 3}
    )
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def _run(bench: Bench, parts: str) -> None:
    if "a" in parts:
        alone, beside = _mice(bench, "many", 320.0)
        bench.find(mice_p99_ratio=beside / alone)
        alone, beside = _mice(bench, "many", 320.0, spread=0.0)
        bench.find(mice_p99_ratio_exact=beside / alone)
    if "b" in parts:
        alone, beside = _mice(bench, "few", 20.0)
        bench.find(mice_p99_extra_service_times=(beside - alone) / 20.0)
    if "c" in parts:
        _late(bench)
    if "w" in parts:
        _weighted(bench)
    if "f" in parts:  # the last, since what is left of the jobs runs on
        _backlog_of_jobs(bench)


def _tenant(running: Platform, name: str) -> str:
    """A tenant of the highest tier that may call the sleeper; its key."""
    running.cli("tenant", "create", name, "--tier", "enterprise")
    running.cli("app", "share", "sleeper", name)
    return running.cli("key", "create", "--tenant", name, "--scopes", "invoke").stdout.strip()


def _mice(bench: Bench, function: str, ms: float, spread: float | None = None) -> tuple[float, float]:
    """The mice's p99 in ms: alone, and beside the elephant, whose calls differ by `spread` (None: the run's)."""
    p99 = []
    length = bench.length if spread is None else replace(bench.length, spread=spread)
    for crowded in (False, True):
        begins = time.monotonic() + START_S
        counted, until = begins + bench.length.warm, begins + bench.length.warm + bench.length.measured
        mice = [_at_rate(bench.member(name, function, [ms], begins, until), MOUSE_RATE) for name in MICE]
        elephant = bench.member(ELEPHANT, function, length.around(ms), begins, until)
        big = [_at_rate(elephant, ELEPHANT_RATE, bench.length.warm)]
        with crowd(mice) as answers_of_mice, crowd(big if crowded else []) as answers_of_elephant:
            busy, parts = _cpu(bench.running, counted, until)
            answers = answers_of_mice() | answers_of_elephant()
        of_mice = [one for name in MICE for one in answers[name] if one.due >= counted]
        _check_all_answered(of_mice, function)
        p99.append(report.percentile([one.ms for one in of_mice], 99))
        print(f"{function} {'beside the elephant' if crowded else 'alone'}: {_spread(of_mice)}; CPU {busy:.0%}")
        print("  cores: " + ", ".join(f"{name} {used:.2f}" for name, used in parts.items()))
        if crowded:
            offered = [one for one in answers[ELEPHANT] if counted <= one.due < until]
            done = sum(one.status == 200 for one in offered)
            print(f"  the elephant offered {len(offered) / bench.length.measured:.0f}/s, {done} were done")
            if spread is None:
                bench.find(**{f"cpu_share_{'a' if function == 'many' else 'b'}": busy})
            if function == "many" and spread is None:
                bench.pictures["64 slots of 320 ms: an elephant and nine mice"] = (answers, begins)
    return p99[0], p99[1]


def _check_all_answered(of_mice: Sequence[Answered], what: str) -> None:
    """End the run if a mouse was not answered: percentiles of those that were would say nothing."""
    if failed := [one.status for one in of_mice if one.status != 200]:
        sys.exit(f"{what}: {len(failed)} of {len(of_mice)} calls of mice failed, with status {sorted(set(failed))}")


def _cpu(running: Platform, begins: float, until: float) -> tuple[float, dict[str, float]]:
    """Wait from one instant to another; the machine's share in use, and the cores that each process of ours used."""
    pids = running.pids | {f"crowd {pid}": pid for pid in descendants(os.getpid()) if is_crowd(pid)}
    pids |= {f"guest {pid}": pid for pid in descendants(pids["agent"])}
    time.sleep(max(0.0, begins - time.monotonic()))
    before = {name: used for name, pid in pids.items() if (used := _seconds(pid)) is not None}
    busy = report.cpu_share(begins, until)
    cores = {name: ((_seconds(pids[name]) or was) - was) / (until - begins) for name, was in before.items()}
    return busy, {name: part for name, part in sorted(cores.items(), key=lambda item: -item[1]) if part > 0.005}


def _seconds(pid: int) -> float | None:
    try:
        return report.cpu_seconds(pid)
    except OSError:
        return None  # it has ended


def _spread(answers: Sequence[Answered]) -> str:
    times = [one.ms for one in answers]
    queued = [one.queue_ms for one in answers]
    return "; ".join(
        f"{name} " + ", ".join(f"p{percent:g} {report.percentile(some, percent):.1f}" for percent in (50, 90, 99))
        for name, some in (("ms", times), ("of that in the queue", queued))
    )


def _at_rate(member: Member, rate: float, ramp_s: float = 0.0) -> Member:
    return msgspec.structs.replace(member, rate=rate, ramp_s=ramp_s)


def _backlogged(member: Member) -> Member:
    return msgspec.structs.replace(member, outstanding=OUTSTANDING)


def _late(bench: Bench) -> None:
    """All are backlogged, the elephant comes later; it is fair when it has been there for a while."""
    begins = time.monotonic() + START_S
    came = begins + bench.length.warm
    counted = came + bench.length.warm
    until = counted + bench.length.measured
    members = [_backlogged(bench.member(name, "many", SIZES_MS, begins, until)) for name in MICE]
    members.append(_backlogged(bench.member(ELEPHANT, "many", SIZES_MS, came, until)))
    with crowd(members) as collect:
        busy, _ = _cpu(bench.running, counted, until)
        answers = collect()
    shares = {name: served(given, counted, until) for name, given in answers.items()}
    bench.find(
        jain=jain(list(shares.values())),
        work_conservation=sum(shares.values()) / (SLOTS * (until - counted)),
        late_tenant_s=share_after(answers[ELEPHANT], came, SLOTS / len(members)),
        cpu_share_c=busy,
    )
    bench.pictures["all are backlogged, one comes late"] = (answers, begins)


def _backlog_of_jobs(bench: Bench) -> None:
    """The mice make live calls; the elephant's calls are stored, and all there at once."""
    ms, p99 = 20.0, []
    for jobs in (0, JOBS):
        asyncio.run(_submit(bench, jobs, bench.length.around(ms)))
        begins = time.monotonic() + START_S
        counted, until = begins + bench.length.warm, begins + bench.length.warm + bench.length.measured
        mice = [_at_rate(bench.member(name, "few", [ms], begins, until), MOUSE_RATE) for name in MICE]
        with crowd(mice) as collect:
            _cpu(bench.running, counted, until)
            answers = collect()
        of_mice = [one for name in MICE for one in answers[name] if one.due >= counted]
        _check_all_answered(of_mice, f"few beside {jobs} jobs")
        p99.append(report.percentile([one.ms for one in of_mice], 99))
        print(f"few beside {jobs} jobs: {_spread(of_mice)}")
    with bench.running.as_holder_of(bench.keys[ELEPHANT]) as elephant:
        left = elephant.get("/v1/jobs", params={"state": "queued", "limit": 1}).json()
        assert left["jobs"] or left["next"], "the backlog did not last: there was no elephant at the end"
    bench.find(mice_p99_extra_service_times_jobs=(p99[1] - p99[0]) / ms)


async def _submit(bench: Bench, jobs: int, sizes_ms: Sequence[float]) -> None:
    """Submit jobs over many connections to all gateways."""
    numbers = iter(range(jobs))

    async def submitter(line: Line) -> None:
        for number in numbers:
            body = f'{{"input":{{"ms":{sizes_ms[number % len(sizes_ms)]}}}}}'.encode()
            answer = await line.post(f"/v1/functions/{OWNER}:sleeper.few/calls", body, patience=30.0)
            assert answer is not None
            assert answer.status == 202, answer
        line.close()

    async with asyncio.TaskGroup() as group:
        for number in range(SUBMITTERS):
            url = bench.running.urls[number % len(bench.running.urls)]
            group.create_task(submitter(Line(url, bench.keys[ELEPHANT], "Prefer: respond-async")))


def _weighted(bench: Bench) -> None:
    """All are backlogged and have weights."""
    weights = {name: float(2 ** (number % 3)) for number, name in enumerate(MICE)}
    for name, weight in weights.items():
        bench.running.cli("tenant", "set", name, "--weight", str(weight))
    begins = time.monotonic() + START_S
    counted, until = begins + bench.length.warm, begins + bench.length.warm + bench.length.measured
    with crowd([_backlogged(bench.member(name, "many", SIZES_MS, begins, until)) for name in MICE]) as collect:
        answers = collect()
    for name in MICE:
        bench.running.cli("tenant", "set", name, "--weight", "1")
    shares = {name: served(given, counted, until) for name, given in answers.items()}
    print({name: round(share / weights[name] / bench.length.measured, 2) for name, share in shares.items()})
    bench.find(share_error=share_error(shares, weights))
    bench.pictures["weights 1:2:4"] = (answers, begins)


def served(answers: Sequence[Answered], begins: float, until: float) -> float:
    """Slot-seconds between two instants: calls count for the part of them that lies between."""
    done = ((one.ended, one.size_ms / 1000) for one in answers if one.status == 200)
    parts = (min(end, until) - max(end - size, begins) for end, size in done)
    return sum(part for part in parts if part > 0)


def share_after(answers: Sequence[Answered], came: float, fair: float, window: float = 0.5) -> float:
    """Seconds after it came until, for a window, a tenant had at least nine tenths of its fair part of the slots."""
    step = 0.05
    for number in range(400):
        begins = came + number * step
        if served(answers, begins, begins + window) >= 0.9 * fair * window:
            return number * step
    return float("inf")


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 when all are equal (Jain, Chiu, Hawe 1984)."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def share_error(shares: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The largest relative error of a weight's share; tenants of one weight count together."""
    groups: dict[float, float] = defaultdict(float)
    counts: dict[float, int] = defaultdict(int)
    for name, share in shares.items():
        groups[weights[name]] += share
        counts[weights[name]] += 1
    total, weight = sum(groups.values()), sum(w * counts[w] for w in groups)
    return max(abs(groups[w] / total / (w * counts[w] / weight) - 1) for w in groups)


def _draw(bench: Bench, path: Path) -> None:
    if find_spec("matplotlib") is None:
        print("no picture: matplotlib is not installed (pip install 'pilotlight[dev]')")
        return
    from benchmarks import fairness_plot

    panels = {
        title: fairness_plot.Panel(
            held={name: partial(served, given) for name, given in answers.items()},
            begins=begins,
            seconds=max(one.due for given in answers.values() for one in given) - begins,
        )
        for title, (answers, begins) in bench.pictures.items()
    }
    fairness_plot.draw(panels, path)


if __name__ == "__main__":
    main()
