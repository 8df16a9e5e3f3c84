"""Small openb traces, made up: as files and as values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.openb.cluster import Cluster
from benchmarks.openb.trace import Kind, Trace, read

NODES = [("n-0", 96_000, 400_000, 8, "G2"), ("n-1", 64_000, 200_000, 2, "T4"), ("n-2", 32_000, 100_000, 4, "V100")]
PODS = [
    *[(4_000, 8_000, 1, 470, "")] * 12,
    *[(8_000, 8_000, 1, 320, "")] * 6,
    *[(3_000, 8_000, 1, 810, "T4|V100")] * 4,
    *[(11_000, 16_000, 1, 1000, "")] * 6,
    *[(20_000, 16_000, 2, 1000, "G2")] * 1,
    *[(0, 1_000, 0, 0, "")] * 1,
    *[(12_000, 30_000, 0, 0, "")] * 3,
]


def write(
    folder: Path,
    name: str = "tiny",
    nodes: Sequence[tuple[object, ...]] = NODES,
    pods: Sequence[tuple[object, ...]] = PODS,
) -> None:
    """The two files of a trace."""
    lines = [",".join(map(str, node)) for node in nodes]
    (folder / "openb_node_list_gpu_node.csv").write_text(
        "\n".join(["sn,cpu_milli,memory_mib,gpu,model", *lines]) + "\n"
    )
    tasks = [f"p-{number:03d}," + ",".join(map(str, pod)) for number, pod in enumerate(pods)]
    head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"
    (folder / f"openb_pod_list_{name}.csv").write_text("\n".join([head, *tasks]) + "\n")


def tiny(folder: Path) -> Trace:
    """The trace of `write`, read back."""
    write(folder)
    return read(folder, "tiny")


def scattered(trace: Trace, seed: int) -> Cluster:
    """The trace's fleet, its nodes in order, with random room: shares in tens of milli-GPU, whole and empty devices."""
    rng = np.random.default_rng(seed)
    cluster = Cluster(trace, range(len(trace.machines)))
    shape = cluster.free.shape
    states = np.stack([np.zeros(shape, np.int64), np.full(shape, 1000), 10 * rng.integers(0, 101, shape)])
    cluster.free = np.where(cluster.free > 0, np.choose(rng.integers(0, 3, shape), states), 0)
    cluster.cpu = rng.integers(0, cluster.cpu + 1)
    return cluster


def kind(cpu: int = 1000, milli: int = 1000, count: int = 1, spec: str = "", memory: int = 0) -> Kind:
    return Kind(cpu=cpu, memory=memory, milli=milli, count=count, spec=spec)
