"""How fast placement decides on a large fleet: `python -m benchmarks.placement_scale [--quick]`.

The fleet has 10,000 GPUs of all kinds in the catalogue, on 8-GPU nodes in three zones, partly spot, partly in MIG mode,
some shareable; 2,000 functions with different needs (types, memory, isolation, spread, weights, purchase, zones) run
10,000 containers on it. Measured are online decisions under churn (a container ends, another one is placed), and one
plan for all functions after 5 % of the counts changed and a node was lost. Decisions keep their full record. A decision
waits for nothing, so on a machine that does nothing else its time and its CPU time are the same.
"""

from __future__ import annotations

import gc
import random
import resource
import time
from itertools import count

from benchmarks.report import arguments, finish, median, percentile, table
from pilotlight_core.host.gc_tuning import freeze
from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_core.model.placing import Over, Purchase, Spread
from pilotlight_core.model.spec import Isolation
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import GIB, Ask
from pilotlight_placement.asks.curves import Curves, ThroughputPoint, whole
from pilotlight_placement.asks.resident_ask import ResidentAsk
from pilotlight_placement.explain.explanation import explain
from pilotlight_placement.fleet.audit import check_integrity
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fragmentation.histogram import AskShape, DemandHistogram
from pilotlight_placement.hardware.catalogue import standard
from pilotlight_placement.hardware.node import Domain, Gpu, Node
from pilotlight_placement.plan.draft import DesiredFunction
from pilotlight_placement.plan.plan import DesiredState, Plan, plan
from pilotlight_placement.search.decision_record import NoFit, Placement
from pilotlight_placement.search.place import place

MIXTURE = {
    "T4": 12, "A10": 8, "L4": 12, "L40S": 8, "A30": 6, "A100-40GB": 8, "A100-80GB": 14, "H100-80GB": 18, "H200": 9,
    "B200": 5,
}  # fmt: skip
"""Parts of the fleet, in percent."""
GPUS_PER_NODE = 8
HOST = HostShare(cpu_millis=128_000, memory=1024 * GIB)
CATALOGUE = standard()


def make_nodes(gpus: int, rng: random.Random) -> list[Node]:
    """Nodes of one kind each; about half of those with MIG are in MIG mode."""
    nodes = []
    for number in range(gpus // GPUS_PER_NODE):
        kind = rng.choices(list(MIXTURE), list(MIXTURE.values()))[0]
        device = CATALOGUE[kind]
        mig = device.family is not None and rng.random() < 0.5
        shareable = not mig and rng.random() < 0.5
        name = f"node-{number:05}"
        parts = tuple(
            Gpu(id=f"{name}-{index}", device=device, mig=mig, shareable=shareable, link="ab"[index // 4])
            for index in range(GPUS_PER_NODE)
        )
        domain = Domain(region="r1", zone=f"z{number % 3}", spot=rng.random() < 0.2)
        weights = frozenset(f"w{rng.randrange(400)}" for _ in range(4))
        nodes.append(Node(name=name, domain=domain, gpus=parts, host=HOST, resident=weights))
    return nodes


def make_curves(rng: random.Random) -> Curves:
    """Throughput that grows with SMs, less than linearly, on every device and cut."""
    points: dict[tuple[str, str], tuple[ThroughputPoint, ...]] = {}
    exponent, base = rng.uniform(0.6, 1.0), rng.uniform(1, 20)
    for name, device in CATALOGUE.devices.items():
        sizes = {whole(): device.sms} | {cut.profile.key: cut.sms for cut in device.cuts}
        for cut, sms in sizes.items():
            speed = base * sms**exponent
            points[name, cut] = tuple(
                ThroughputPoint(batch=batch, throughput=speed * batch**0.5, p95_ms=1000 * batch**0.5 / speed)
                for batch in (1, 4, 16)
            )
    return Curves(points)


def make_ask(number: int, rng: random.Random) -> Ask:
    """A function's ask: what people ask for, in all combinations."""
    gib = rng.choice((2, 4, 4, 8, 8, 12, 16, 16, 20, 34, 40, 60))
    types = rng.choice((("ANY",), ("ANY",), ("H100", "A100", "L40S"), ("A100", "H100"), ("H200", "B200", "H100")))
    many = rng.random() < 0.04
    return Ask(
        function=f"f{number}",
        tenant=f"t{number % 100}",
        gpu=(GpuAsk("H100", 4), GpuAsk("A100", 4)) if many else tuple(GpuAsk(name) for name in types),
        vram=(120 if many else gib) * GIB,
        memory=rng.choice((4, 8, 16, 32)) * GIB,
        cpu=rng.choice((500, 1000, 2000, 4000)),
        isolation=rng.choice((Isolation.SHARED, Isolation.SHARED, Isolation.MIG, Isolation.EXCLUSIVE)),
        by_cost=rng.random() < 0.7,
        curves=make_curves(rng) if rng.random() < 0.3 else None,
        slo_ms=rng.choice((None, 100.0)),
        spread=rng.choice((None, Spread(over=Over.ZONE), Spread(over=Over.NODE, most=2))),
        avoid=(f"f{number ^ 1}",) if rng.random() < 0.1 else (),
        resident=(ResidentAsk(f"w{rng.randrange(400)}"),) if rng.random() < 0.5 else (),
        purchase=rng.choice((Purchase.ANY, Purchase.ANY, Purchase.ON_DEMAND)),
        zones=("z0", "z1") if rng.random() < 0.1 else (),
        neighbours=rng.random() < 0.3,
    )


def fill(fleet: Fleet, asks: list[Ask], containers: int, rng: random.Random, ids: count[int]) -> None:
    """Place containers of random functions until there are so many."""
    tries = 0
    while len(fleet.held) < containers and tries < 3 * containers:
        tries += 1
        start(fleet, rng.choice(asks), f"c{next(ids)}")


def start(fleet: Fleet, ask: Ask, container: str) -> bool:
    """Decide and hold; whether there was a place."""
    return hold(fleet, place(fleet, ask), container)


def hold(fleet: Fleet, found: Placement | NoFit, container: str) -> bool:
    """Let the container have what was found, if anything was."""
    if isinstance(found, NoFit):
        return False
    fleet.hold(found.held(container))
    return True


def decisions(
    fleet: Fleet, asks: list[Ask], rounds: int, rng: random.Random, ids: count[int]
) -> tuple[list[float], list[float]]:
    """Milliseconds of each online decision under churn (one container ends, another is placed), and its CPU time."""
    took: list[float] = []
    worked: list[float] = []
    living = sorted(fleet.held)
    for _ in range(rounds):
        index = rng.randrange(len(living))
        fleet.release(living[index])
        ask, living[index] = rng.choice(asks), f"c{next(ids)}"
        began, cpu = time.perf_counter(), time.thread_time()
        found = place(fleet, ask)
        worked.append((time.thread_time() - cpu) * 1000)
        took.append((time.perf_counter() - began) * 1000)
        if not hold(fleet, found, living[index]):
            living[index] = living[-1]
            living.pop()
    return took, worked


def desired_of(fleet: Fleet, asks: list[Ask], rng: random.Random) -> DesiredState:
    """As many as there are of each function; of 5 % of the functions one or two more or fewer."""
    wants = []
    for ask in asks:
        there = len(fleet.functions.get(ask.function, {}))
        change = rng.choice((-2, -1, 1, 2)) if rng.random() < 0.05 else 0
        wants.append(DesiredFunction(ask=ask, count=max(0, there + change)))
    return DesiredState(wants=tuple(wants), revision=1)


def planning(fleet: Fleet, asks: list[Ask], rng: random.Random, ids: count[int], repeats: int) -> tuple[float, Plan]:
    """Seconds of a plan after the counts changed and a node was lost (median of some), and the last plan."""
    took, containers = [], len(fleet.held)
    for _ in range(repeats):
        desired = desired_of(fleet, asks, rng)
        lost = fleet.places[rng.choice(sorted(fleet.places))].node
        fleet.remove(lost.name)
        gc.collect()
        began = time.perf_counter()
        made = plan(fleet, desired, 10_000.0)
        for container, outcome in made.outcomes:
            explain(outcome, container)
        took.append(time.perf_counter() - began)
        fleet.put(lost)
        fill(fleet, asks, containers, rng, ids)
    return median(took), made


def main() -> None:
    """Measure and report."""
    parser = arguments("placement_scale", "how fast placement decides on 10,000 mixed GPUs")
    parser.add_argument("--gpus", type=int, default=10_000, help="GPUs of the fleet")
    parser.add_argument("--seed", type=int, default=42)
    options = parser.parse_args()
    gpus, functions, rounds, repeats = options.gpus, 2_000, 20_000, 5
    if options.quick:
        gpus, functions, rounds, repeats = 1_000, 200, 1_000, 1
    rng, ids = random.Random(options.seed), count()
    asks = [make_ask(number, rng) for number in range(functions)]
    began = time.perf_counter()
    fleet = Fleet(make_nodes(gpus, rng))
    fleet.retune(mix_of(asks))
    built = time.perf_counter() - began
    fill(fleet, asks, gpus, rng, ids)
    freeze()  # as the controller does once it knows its fleet
    took, worked = decisions(fleet, asks, rounds, rng, ids)
    fill(fleet, asks, gpus, rng, ids)
    plan_s, made = planning(fleet, asks, rng, ids, repeats)
    check_integrity(fleet)
    figures = {
        "decision_p50_ms": percentile(took, 50),
        "decision_p99_ms": percentile(took, 99),
        "plan_s": plan_s,
        "rss_mb": rss_mb(),
        "decision_cpu_p50_ms": percentile(worked, 50),
        "decision_cpu_p99_ms": percentile(worked, 99),
    }
    rows = [
        ("GPUs", len(fleet.units)), ("functions", functions), ("containers", len(fleet.held)),
        ("online decisions", rounds),
        ("p50 of a decision, ms", figures["decision_p50_ms"]),
        ("p99 of a decision, ms", figures["decision_p99_ms"]),
        ("p50 in CPU time, ms", figures["decision_cpu_p50_ms"]),
        ("p99 in CPU time, ms", figures["decision_cpu_p99_ms"]),
        ("slowest decision, ms", max(took)),
        ("plan with explanations, s", plan_s), ("commands of the plan", len(made.commands)),
        ("without a place", sum(short.missing for short in made.short)),
        ("fleet built in, s", built), ("resident memory, MB", figures["rss_mb"]),
    ]  # fmt: skip
    table("Placement at scale", ("what", "figure"), rows)
    finish("placement_scale", figures)


def mix_of(asks: list[Ask]) -> dict[AskShape, float]:
    """The demand histogram if each function were asked for once."""
    histogram = DemandHistogram()
    for ask in asks:
        if (shape := AskShape.of(ask)) is not None:
            histogram.observe(shape, 0.0)
    return histogram.shares()


def rss_mb() -> float:
    """The most memory that this process has had resident, in MB (the fleet, its journal and the plan)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    main()
