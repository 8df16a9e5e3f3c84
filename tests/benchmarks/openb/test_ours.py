"""The trace in the product's own values: what is asked of `place()`, and what comes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.openb.cluster import Cluster
from benchmarks.openb.ours import Ours, ask_of, demand, node_of, slots_of
from benchmarks.openb.trace import WHOLE, Machine
from pilotlight_placement.asks.ask import CPU, MIB
from pilotlight_placement.fleet.audit import check_integrity
from pilotlight_placement.fragmentation.histogram import AskShape
from pilotlight_placement.hardware.node import SHARE_UNITS, units_of
from tests.benchmarks.openb.makers import kind, tiny


def test_a_machine_is_a_node_with_all_that_it_has() -> None:
    """Its cores, its memory, its devices, which may be shared, and CPU slots."""
    made = node_of("n", Machine(name="m", cpu=96_000, memory=400_000, gpus=8, model="G2"), slots=3)

    assert made.host is not None
    assert (made.host.cpu_millis, made.host.memory) == (96_000, 400_000 * MIB)
    assert [gpu.device.name for gpu in made.gpus] == ["G2"] * 8
    assert all(gpu.shareable for gpu in made.gpus)
    assert len(made.slots) == 3


def test_slots_are_as_many_as_the_smallest_tasks_without_gpu_could_use() -> None:
    """So that cores decide, not slots; a trace without such tasks has none."""
    machine = Machine(name="m", cpu=96_000, memory=1, gpus=8, model="G2")

    assert slots_of(machine, 8_000) == 12
    assert slots_of(machine, 1) == 128
    assert slots_of(machine, 0) == 0


@pytest.mark.parametrize("milli", [1, 50, 470, 810, 999])
def test_a_share_is_exactly_its_part(milli: int) -> None:
    """A milli-GPU is one of the product's parts."""
    wanted = ask_of(kind(milli=milli))
    device = node_of("n", Machine(name="m", cpu=1, memory=1, gpus=1, model="G2"), slots=0).gpus[0].device

    assert units_of(wanted.mib(), device) == milli * SHARE_UNITS // WHOLE


def test_an_ask_has_all_that_the_task_needs() -> None:
    """Accepted models alike; several whole devices; none for a task without GPU."""
    wanted = ask_of(kind(cpu=3000, memory=7, count=2, spec="V100|T4"))

    assert (wanted.cpu, wanted.memory, wanted.by_cost, wanted.vram) == (3000, 7 * MIB, True, 0)
    assert [(choice.type, choice.count) for choice in wanted.gpu] == [("T4", 2), ("V100", 2)]
    assert [choice.type for choice in ask_of(kind(milli=0, count=0)).choices] == [CPU]


def test_every_choice_fits_until_nothing_does(tmp_path: Path) -> None:
    """The simulated fleet, which checks what it gives, follows the product's; a refusal means that nothing fits."""
    trace = tiny(tmp_path)
    cluster = Cluster(trace, range(3))
    ours = Ours(trace, (0, 1, 2))
    rng = np.random.default_rng(1)
    refused = 0
    for number in rng.integers(0, len(trace.kinds), 120).tolist():
        fits = cluster.fits(trace.kinds[number], np.arange(3)).any()
        choice = ours.choose(number)
        assert (choice is not None) == fits
        refused += choice is None
        if choice is not None:
            cluster.take(trace.kinds[number], *choice)
    assert refused > 10
    check_integrity(ours.fleet)


def test_the_policy_is_told_of_typical_tasks_only(tmp_path: Path) -> None:
    """Those with a GPU, through the histogram that the controller's fleet follows."""
    trace = tiny(tmp_path)
    shapes = demand(trace).shares()
    typical = {AskShape.of(ask_of(k)) for k in trace.kinds if k.count}

    assert shapes
    assert set(shapes) <= typical
    assert sum(shapes.values()) == pytest.approx(1)
