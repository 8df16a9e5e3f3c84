"""Plants made at random, half of them with two causes or more: whatever is named, its first action has to help."""

from __future__ import annotations

import random

from benchmarks.bottlenecks.plants import Plant, PlantedTenant


def random_plant(chance: random.Random) -> Plant:
    """A plant with any number of causes, none among them."""
    batch, fixed, each = chance.choice((1, 4, 16, 32)), chance.uniform(0.005, 0.06), chance.uniform(0.0002, 0.004)
    count = chance.randint(1, 6)
    full = count * batch / (fixed + each * batch)
    rate = min(1200.0, full * chance.choice((0.1, 0.3, 0.6, 0.9, 1.15)))
    gateway = chance.choice((0.00015, 0.00015, 0.00015, chance.uniform(0.6, 1.02) / rate))
    link = chance.choice((1e9, 1e9, 1e9, 1e9, rate * 4e6 / chance.uniform(0.6, 1.02)))
    others: tuple[PlantedTenant, ...] = ()
    if chance.random() < 0.25:
        others = (PlantedTenant(name="b", callers=chance.randint(4, 40), cost=chance.uniform(10, 60)),)
        batch, rate = 1, rate / 4
    return Plant(
        tenants=(
            PlantedTenant(
                name="a", rate=rate, body_bytes=4e6 if link < 1e9 else 2e3,
                per_s=chance.choice((1e9, 1e9, 1e9, rate * 0.7)),
            ),
            *others,
        ),
        containers=count, max_containers=count + chance.choice((0, 0, 4)), fits=chance.choice((99, 99, count)),
        slots=chance.choice((batch, 2 * batch, max(1, batch // 5))), batch=batch, fixed_s=fixed, each_s=each,
        gateway_s=gateway, bytes_per_s=link, wait_s=chance.choice((0.002, 0.002, 0.25)), load_s=1.0, seconds=30.0,
        queue_most=10**6,
    )  # fmt: skip


def healthy_plant(chance: random.Random) -> Plant:
    """A plant between 20 and 70 % of its capacity, with nothing wrong."""
    batch, fixed, each = chance.choice((1, 4, 16, 32)), chance.uniform(0.005, 0.04), chance.uniform(0.0002, 0.002)
    count = chance.randint(2, 6)
    full = count * batch / (fixed + each * batch)
    rate = min(600.0, full * chance.uniform(0.2, 0.7))
    return Plant(
        tenants=(PlantedTenant(name="a", rate=rate),), containers=count, max_containers=count + 2, slots=2 * batch,
        batch=batch, fixed_s=fixed, each_s=each, seconds=40.0, level_s=0.3,
    )  # fmt: skip
