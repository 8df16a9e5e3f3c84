"""The bottlenecks that are planted one by one, with what a right diagnosis says of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.bottlenecks.engine_model import EnginePlant
from benchmarks.bottlenecks.plants import Plant, PlantedTenant


@dataclass(frozen=True, kw_only=True)
class PlantedCase:
    """A plant, and the cause that bounds it."""

    name: str
    plant: Plant | EnginePlant
    asked: Mapping[str, float] = field(default_factory=dict)
    """What whoever asks says: the rate that is wanted."""
    tenant: str = ""
    """Whose calls are asked about."""
    spoilt: str = ""
    """A counter that is told wrong."""


def one(**fields: float) -> tuple[PlantedTenant, ...]:
    """A single tenant."""
    return (PlantedTenant(**fields),)  # type: ignore[arg-type]


SEED_CASES: tuple[PlantedCase, ...] = (
    PlantedCase(
        name="gpu",
        plant=Plant(tenants=one(rate=1850), containers=4, max_containers=4, slots=32, seconds=40, queue_most=10**6),
    ),
    PlantedCase(
        name="gateway",
        plant=Plant(tenants=one(rate=330), gateway_s=0.003, containers=8, max_containers=8, level_s=0.06),
    ),
    PlantedCase(name="starved", plant=Plant(tenants=one(rate=280), containers=4, slots=3, batch=16, max_containers=4)),
    PlantedCase(
        name="waits",
        plant=Plant(tenants=one(rate=12), containers=1, max_containers=1, wait_s=0.4, batch=32, slots=32, seconds=240),
    ),
    PlantedCase(
        name="cold",
        plant=Plant(
            tenants=one(rate=0.25, burst=5),
            containers=1,
            min_containers=0,
            max_containers=3,
            idle_s=2.0,
            load_s=4.0,
            seconds=600,
        ),
    ),
    PlantedCase(
        name="neighbour",
        plant=Plant(
            tenants=(PlantedTenant(name="victim", rate=6), PlantedTenant(name="bully", callers=40, cost=80)),
            containers=4,
            max_containers=4,
            slots=1,
            batch=1,
            spread=0.2,
            seconds=400,
        ),
        tenant="victim",
    ),
    PlantedCase(name="quota", plant=Plant(tenants=one(rate=120, per_s=70))),
    PlantedCase(
        name="placement",
        plant=Plant(
            tenants=one(rate=900),
            containers=2,
            max_containers=6,
            fits=2,
            slots=24,
            load_s=0.5,
            queue_most=10**6,
            seconds=60,
        ),
    ),
    PlantedCase(name="client", plant=Plant(tenants=one(callers=4), containers=4), asked={"wanted_per_s": 500.0}),
    PlantedCase(name="payload", plant=Plant(tenants=one(rate=13, body_bytes=8e6), bytes_per_s=1.25e8, seconds=240)),
    PlantedCase(name="kv", plant=EnginePlant(rate=2.2, prompt=1500, output=600, kv=40_000, most=64)),
    PlantedCase(
        name="itl",
        plant=EnginePlant(
            rate=3.0, prompt=300, output=250, long_every=2, long=5000, chunk=2048, kv=400_000, first_level_s=2.0
        ),
    ),
    PlantedCase(
        name="itl_batch",
        plant=EnginePlant(
            rate=2.4, prompt=60, output=400, most=256, kv=900_000, step_s=0.03, decode_s=0.0006, chunk=256
        ),
    ),
    PlantedCase(name="crash_loop", plant=Plant(tenants=one(rate=20), starts_fail=True, max_containers=2, load_s=1.5)),
    PlantedCase(
        name="cpu",
        plant=Plant(
            tenants=one(rate=90),
            containers=4,
            max_containers=4,
            slots=2,
            batch=1,
            fixed_s=0.04,
            each_s=0.005,
            cpu_part=0.8,
            spread=0.2,
        ),
    ),
    PlantedCase(name="budget", plant=Plant(tenants=one(rate=60, budget=4_000))),
    PlantedCase(
        name="large_batches",
        plant=Plant(
            tenants=one(rate=160),
            containers=3,
            max_containers=3,
            batch=64,
            slots=128,
            fixed_s=0.015,
            each_s=0.012,
            level_s=0.3,
            wait_s=0.5,
        ),
    ),
    PlantedCase(
        name="bursts",
        plant=Plant(
            tenants=one(rate=30, burst=40),
            containers=2,
            max_containers=2,
            slots=1,
            batch=1,
            fixed_s=0.02,
            each_s=0.001,
            seconds=300,
        ),
    ),
    PlantedCase(
        name="flapping",
        plant=Plant(
            tenants=(PlantedTenant(name="a", rate=20), PlantedTenant(name="b", rate=12, burst=120)),
            containers=1,
            min_containers=1,
            max_containers=6,
            slots=1,
            batch=1,
            fixed_s=0.029,
            each_s=0.001,
            load_s=2.0,
            idle_s=1.5,
            seconds=600,
        ),
    ),
    PlantedCase(
        name="slice",
        plant=Plant(tenants=one(rate=5), slots=1, batch=1, fixed_s=0.39, each_s=0.01, faster_slice=0.3, seconds=240),
    ),
    PlantedCase(
        name="memory",
        plant=Plant(tenants=one(rate=40), deaths_per_call=0.01, memory_part=0.99, load_s=0.5, seconds=240),
    ),
    PlantedCase(
        name="breaker",
        plant=Plant(tenants=one(rate=40), deaths_per_call=0.03, memory_part=0.3, load_s=0.5, seconds=240),
    ),
)
"""The first thirteen are those of the facts; the others are more causes."""
HEALTHY: tuple[PlantedCase, ...] = (
    PlantedCase(name="nothing", plant=Plant(tenants=one(rate=300), seconds=60)),
    PlantedCase(name="nothing", plant=EnginePlant()),
)
SPOILT: tuple[PlantedCase, ...] = tuple(
    PlantedCase(name="counters", plant=Plant(tenants=one(rate=300), seconds=60), spoilt=counter)
    for counter in ("completed", "mean_inside", "busy_s", "arrivals")
)
