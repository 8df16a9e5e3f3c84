"""What it costs to see: what the gateway pays a call, and a question for what was counted.

One process and no sockets. Processor time of one thread, the median of several runs: the machine may be busy.

    tally_us    of a call: its arrival and its end told to the tallies, and its part of adding up, sealing and tens. Of
                a mix of functions, whose calls were cold or batched in part
    recorder_us the same through the recorder, with service levels, beyond what metrics alone cost
    merge_ms    of a question about all functions of 512, each with calls at each of 4 gateways: adding up what they
                tell, from the bytes of their answers to the windows
    page_ms     of the dashboard's page of the fleet with 2,000 containers, from the JSON of its routes to packed HTML;
                page_kb, what a browser gets; page_changes_ms and _kb, a second in which 200 of them changed

Each figure is a function in `PARTS`, which returns figures by name.
"""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections.abc import Callable, Mapping

from benchmarks import report
from benchmarks.dashboard_page import page_cost
from benchmarks.trace_costs import trace_cost
from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.messages.scheduling import AskTallies
from pilotlight_core.model.messages.wire import decode, encode
from pilotlight_core.model.spec import SLO, VersionRecord
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.metrics.call_recorder import CallRecorder
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.tally.gateway_tallies import GatewayTallies
from pilotlight_gateway.tally.home_tallies import HomeTallies
from pilotlight_gateway.tally.tallies import Tallies
from pilotlight_gateway.tally.tally_answers import TallyAnswers, TallySources
from pilotlight_gateway.tally.tally_window import added_up
from tests.builders.calls import prepared_call
from tests.builders.specs import function_spec, method, version_record

RUNS = 7
GATEWAYS = 4
CALLS = 2_000
"""That are told again and again, so that they are in the processor's caches as those of a gateway are."""
FUNCTIONS = 512
MINUTE_NS = 60_000_000_000
NOON_NS = 29_833_334 * MINUTE_NS
STEP_NS = 1_000_000
"""Between two calls."""
Figures = Mapping[str, float]


class BenchClock:
    """Unix nanoseconds that a run moves."""

    def __init__(self) -> None:
        self.at_ns = NOON_NS

    def __call__(self) -> int:
        return self.at_ns


def version(number: int) -> VersionRecord:
    """One of many functions; every other one has a service level."""
    slo = SLO(p95_ms=50.0) if number % 2 else SLO()
    return version_record(
        function_spec(f"f{number}", method(), slo=slo), id=f"ver_{number:032x}", tenant="acme", app="shop"
    )


class MadeCalls:
    """Calls as they end: made before, so that a run pays for nothing of it."""

    def __init__(self, count: int, functions: int, seed: int = 1) -> None:
        draw = random.Random(seed)
        versions = [version(number) for number in range(functions)]
        self.ended: list[tuple[PreparedCall, CallResult, dict[str, float], float]] = []
        for number in range(count):
            call = prepared_call(f"call_local_1_{number:020d}", version=draw.choice(versions), input=b"x" * 200)
            execute = draw.lognormvariate(3.0, 0.5)
            stages = {
                "gateway": 0.2, "queue": draw.expovariate(1.0), "start": 0.0, "transport": draw.uniform(0.2, 0.6),
                "batch_wait": draw.choice((0.0, 2.0)), "execute": execute, "respond": 0.1,
            }  # fmt: skip
            spent = Spent(ns=int(execute * 1e6 / 4), ppm=142_857, price="h100", batch_size=draw.choice((1, 2, 4, 8)))
            cold = {"bind": 20.0, "load": 900.0} if draw.random() < 0.002 else None
            result = CallResult(output=b"y" * 300, spent=spent, stages=stages, cold_start=cold)
            self.ended.append((call, result, stages, sum(stages.values())))


def cpu(work: Callable[[], None]) -> float:
    """Seconds of processor time."""
    gc.collect()
    gc.disable()
    before = time.thread_time()
    work()
    spent = time.thread_time() - before
    gc.enable()
    return spent


def tally_cost(*, quick: bool) -> Figures:
    """What a call costs, with its part of what is done later: 40 functions, a thousand calls a second for a minute."""
    calls, rounds = MadeCalls(CALLS, 40), 2 if quick else 30
    told, recorded = [], []
    for _ in range(RUNS):
        told.append(cpu(lambda: tell_tallies(calls, rounds)))
        recorded.append(cpu(lambda: tell_recorder(calls, rounds)) - cpu(lambda: tell_metrics(calls, rounds)))
    each = 1e6 / (rounds * len(calls.ended))
    return {"tally_us": report.median(told) * each, "recorder_us": report.median(recorded) * each}


def tell_tallies(calls: MadeCalls, rounds: int) -> None:
    """Of the arrival and the end of each call."""
    clock = BenchClock()
    tallies = Tallies(clock)
    for _ in range(rounds):
        for number, (call, result, stages, total_ms) in enumerate(calls.ended):
            tallies.call_arrived(call.version)
            tallies.call_ended(call, result, stages, total_ms)
            if number % 100 == 0:
                clock.at_ns += 100 * STEP_NS
                tallies.fold()


def tell_recorder(calls: MadeCalls, rounds: int) -> None:
    """The same, as a gateway does."""
    recorder = CallRecorder(GatewayMetrics(), time.monotonic, Tallies(BenchClock()))
    for _ in range(rounds):
        for call, result, stages, total_ms in calls.ended:
            call.is_recorded = False
            recorder.call_arrived(call)
            recorder.call_ended(call, result, stages, total_ms)


def tell_metrics(calls: MadeCalls, rounds: int) -> None:
    """Of what was counted before there were tallies."""
    metrics = GatewayMetrics()
    for _ in range(rounds):
        for _call, result, stages, total_ms in calls.ended:
            metrics.call_ended(stages, total_ms, result.cold_start)


def merge_cost(*, quick: bool) -> Figures:
    """What a question costs whoever asks it."""
    answers = asyncio.run(answers_of(GATEWAYS, 64 if quick else FUNCTIONS))
    asked, sizes = AskTallies(tenant="acme", since_ns=NOON_NS), [len(data) for data in answers]
    found = [cpu(lambda: windows_of(answers, asked)) * 1e3 for _ in range(RUNS)]
    return {"merge_ms": report.median(found), "answer_kb": max(sizes) / 1e3}


def windows_of(answers: list[bytes], asked: AskTallies) -> None:
    """Add up what gateways told."""
    asyncio.run(_windows_of(answers, asked))


async def _windows_of(answers: list[bytes], asked: AskTallies) -> None:
    await added_up([decode(data) for data in answers], asked, NOON_NS + 10 * MINUTE_NS)


async def answers_of(gateways: int, functions: int) -> list[bytes]:
    """What gateways tell in short of ten minutes, as bytes."""
    told = []
    for gateway in range(gateways):
        clock, calls = BenchClock(), MadeCalls(functions * 40, functions, seed=gateway)
        tallies = Tallies(clock)
        for number, (call, result, stages, total_ms) in enumerate(calls.ended):
            tallies.call_arrived(call.version)
            tallies.call_ended(call, result, stages, total_ms)
            clock.at_ns = NOON_NS + number * 9 * MINUTE_NS // len(calls.ended)
        own = GatewayTallies(f"gateway-{gateway}", wall=clock)
        sources = TallySources(calls=tallies, homes=HomeTallies(), own=own, wall=clock)
        asked = AskTallies(tenant="acme", since_ns=NOON_NS, brief=True)
        told.append(encode(await TallyAnswers(sources).answer(asked)))
    return told


PARTS: dict[str, Callable[..., Figures]] = {
    "tally": tally_cost,
    "merge": merge_cost,
    "trace": trace_cost,
    "page": page_cost,
}
"""What is measured, by its name on the command line."""


def main() -> None:
    parser = report.arguments("seeing", "What it costs to see what calls are.")
    parser.add_argument("--only", choices=sorted(PARTS), help="one part alone")
    options = report.parsed(parser)
    figures: dict[str, float] = {}
    for name, measure in PARTS.items():
        if options.only in (None, name):
            figures |= measure(quick=options.quick)
    report.table("Seeing", ("figure", "value"), [(name, value) for name, value in figures.items()])
    report.finish("seeing", figures)


if __name__ == "__main__":
    main()
