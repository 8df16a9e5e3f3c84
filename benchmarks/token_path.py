"""What the platform adds to an engine's tokens: processor time of its parts for each, and time between two of them.

64 streams at a time over HTTP, through gateway and agent, from an engine without a model in its sandbox, whose steps
take 12 ms: each step has a token for each stream. Beside it the same engine by itself, in a loop of this process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks import report
from benchmarks.agent_path import cpu_ns
from benchmarks.token_client import PROMPT, Arrival
from pilotlight_engine.engine_port import GenRequest, Sampling, TokenOut
from pilotlight_engine.scheduling.step_scheduler import SchedulerLimits
from pilotlight_engine.sim.sim_engine import SimEngine, SimModel
from pilotlight_engine.sim.step_costs import StepCosts
from tests.system.support.platform import ROOT, Platform, platform
from tests.system.support.processes import descendants
from tests.waiting import wait_until

STREAMS = 64
STEP_MS = 12.0
BUDGET = 4096
"""Tokens of a step: all prompts at once."""
WARM_UP = 8
"""Tokens of each stream before anything is measured."""
MOST_S = 360.0
FUNCTION = "tokens.chat"
SOURCE = f"""\
from pilotlight import App, Sim

app = App("tokens")
chat = app.engine("chat", Sim(step_ms={STEP_MS}, max_sequences={STREAMS}, max_tokens_per_step={BUDGET}),
                  min_containers=1, max_containers=1, forecast=False)
"""
PLATFORM = ("gateway", "agent")
"""Whose processor time is the platform's own share of a token."""

Streams = Sequence[Sequence[Arrival]]


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The engine by itself, while the platform has nothing to do, and through the platform."""

    alone: Streams
    at_rest: dict[str, float]
    """Microseconds of the platform's processes for each second without calls."""
    seen: Streams
    seconds: float
    """As long as clients' streams took."""
    used: dict[str, float]
    """Microseconds of each process for a token, of the streams' opening and end too."""


def measure_platform(rounds: int, tokens: int) -> dict[str, float]:
    """Print tables; returns figures, each the median of rounds. `tokens` are those of each stream in a round."""
    with (
        tempfile.TemporaryDirectory() as folder,
        # A process that was forked uses a tenth more: its pages are another's until it writes to them.
        platform(Path(folder), "--blanks", "1", executed=True) as running,
    ):
        app = Path(folder) / "app.py"
        app.write_text(SOURCE)
        running.deploy(app)
        _through_platform(running, WARM_UP)
        wait_until(lambda: running.blanks() == 1, "the blank that was taken has a successor")
        turns = [_turn(running, tokens) for _ in range(rounds)]
    alone, through = [gaps_ms(turn.alone) for turn in turns], [gaps_ms(turn.seen) for turn in turns]
    cpu = {part: report.median([turn.used[part] for turn in turns]) for part in turns[0].used}
    own = report.median([sum(turn.used[part] for part in PLATFORM) for turn in turns])
    resting = report.median(
        [sum(turn.at_rest[part] for part in PLATFORM) * turn.seconds / (STREAMS * tokens) for turn in turns]
    )
    together = report.median([STREAMS * tokens / sum(len(stream) for stream in turn.seen) for turn in turns])
    report.table(
        f"{STREAMS} streams through the whole platform, {tokens} tokens each, steps of {STEP_MS:g} ms",
        ("processor time for a token, of", "µs"),
        [*cpu.items(), ("gateway and agent", own), ("of that without any call, in the same time", resting)],
    )
    report.table(
        f"time between two tokens while all {STREAMS} streams run; {together:.3g} tokens in a chunk",
        ("seen by", "p50 ms", "p95 ms", "p99 ms", "most ms"),
        [
            (name, *(report.median([report.percentile(gaps, part) for gaps in found]) for part in (50, 95, 99, 100)))
            for name, found in (("the engine by itself", alone), ("a client of the platform", through))
        ],
    )
    p99 = [
        (report.percentile(whole, 99), report.percentile(bare, 99)) for whole, bare in zip(through, alone, strict=True)
    ]
    return {
        "platform_us_per_token": own,
        "gateway_us_per_token": cpu["gateway"],
        "agent_us_per_token": cpu["agent"],
        "rest_us_per_token": resting,
        "itl_added_p99_ms": report.median([whole - bare for whole, bare in p99]),
        "itl_64_p99_ms": report.median([whole for whole, _ in p99]),
        "tokens_per_chunk": together,
    }


def gaps_ms(streams: Streams) -> list[float]:
    """Milliseconds between two tokens, from when the last stream has begun until the first one ends.

    Of tokens that come together the first has waited all the time, the others none.
    """
    begin, end = max(stream[0][0] for stream in streams), min(stream[-1][0] for stream in streams)
    found: list[float] = []
    for stream in streams:
        for (before, _), (at, tokens) in pairwise(stream):
            if begin <= before and at <= end:
                found += [(at - before) * 1000.0, *([0.0] * (tokens - 1))]
    if not found:
        raise SystemExit("no two streams ran at the same time: ask for more tokens")
    return found


def _turn(running: Platform, tokens: int) -> Turn:
    pids = {name: (pid,) for name, pid in running.pids.items() if name in PLATFORM}
    before, start = {name: cpu_ns(own) for name, own in pids.items()}, time.perf_counter()
    alone = _alone(tokens)
    took = time.perf_counter() - start
    at_rest = {name: (cpu_ns(own) - before[name]) / 1e3 / took for name, own in pids.items()}
    start = time.perf_counter()
    seen, used = _through_platform(running, tokens)
    return Turn(alone=alone, at_rest=at_rest, seen=seen, seconds=time.perf_counter() - start, used=used)


def _alone(tokens: int) -> Streams:
    """The engine as the function's container has it, with nothing about it."""
    engine = SimEngine(
        SimModel(vocabulary=257, kv_tokens=4096 * STREAMS),
        SchedulerLimits(token_budget=BUDGET, max_running=STREAMS),
        StepCosts(step_ms=STEP_MS, prefill_token_ms=0.0, decode_token_ms=0.0, stored_token_ms=0.0),
        wait=time.sleep,
    )
    for number in range(STREAMS):
        ids = tuple(1 + (number + place * number) % 250 for place in range(PROMPT))
        engine.admit(GenRequest(id=str(number), prompt_ids=ids, max_new=tokens, sampling=Sampling(seed=number)))
    came: dict[str, list[Arrival]] = {str(number): [] for number in range(STREAMS)}
    while engine.has_work():
        events, at = engine.step(), time.perf_counter()
        for event in events:
            if isinstance(event, TokenOut):
                came[event.id].append((at, 1))
    return list(came.values())


def _through_platform(running: Platform, tokens: int) -> tuple[Streams, dict[str, float]]:
    """What clients saw, and microseconds of each process for a token."""
    pids: dict[str, tuple[int, ...]] = {name: (pid,) for name, pid in running.pids.items() if "controller" not in name}
    pids["guests"] = tuple(descendants(running.pids["agent"]))
    before = {name: cpu_ns(own) for name, own in pids.items()}
    words = [sys.executable, "-m", "benchmarks.token_client", running.url, str(STREAMS), str(tokens), FUNCTION]
    done = subprocess.run(words, env=running.env, cwd=ROOT, stdout=subprocess.PIPE, timeout=MOST_S, check=True)
    used = {name: (cpu_ns(own) - before[name]) / 1e3 for name, own in pids.items()}
    seen = json.loads(done.stdout)
    streams: Streams = seen["streams"]
    if short := [each for each in streams if sum(count for _, count in each) != tokens]:
        raise SystemExit(f"{len(short)} of {STREAMS} streams have not {tokens} tokens")
    used["client"] = seen["cpu_s"] * 1e6
    return streams, {name: took / (STREAMS * tokens) for name, took in used.items()}
