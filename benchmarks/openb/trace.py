"""The openb files (Alibaba cluster-trace-gpu-v2023): read, checked, never kept here. `--data` names their folder."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

WHOLE = 1000
"""Milli-GPU of a device."""
NODES = "openb_node_list_gpu_node"
PODS = "openb_pod_list_"
COVERED = 0.95
"""Part of all tasks that the typical ones stand for, as in the published runs."""
LEAST_CPU = 100
"""Milli-CPU of a task that asks for none, as Kubernetes counts it."""
MOST_GPUS = 8

DIGESTS = {
    "openb_node_list_gpu_node": "2beca64b4d3dfa342036a34b56a495c6",
    "openb_pod_list_cpu050": "747f43247bffc2b0bb081d7f61f0705c",
    "openb_pod_list_default": "1ee7ed79c27a3b0861cda8ddba86a004",
    "openb_pod_list_gpushare40": "d83ce79a4eb6987524bedbb0c65e41ae",
    "openb_pod_list_gpuspec10": "2dc7e4cb9480484f08539720b433a9ec",
    "openb_pod_list_multigpu20": "d9ec6f6c74fb980cc0b81239470c6353",
}
"""The first 128 bits of the SHA-256 of the published files that we have seen."""


class BadTrace(ValueError):
    """A file is not an openb table; says which line, and why."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A node: milli-CPU, MiB of memory, GPUs of one model."""

    name: str
    cpu: int
    memory: int
    gpus: int
    model: str


@dataclass(frozen=True, kw_only=True, order=True)
class Kind:
    """What a task asks for; tasks that ask for the same are one kind. `spec`: accepted models as "A|B", "" for any."""

    cpu: int
    memory: int
    milli: int
    count: int
    spec: str

    @property
    def models(self) -> frozenset[str]:
        """The models that it accepts; empty means any."""
        return frozenset(filter(None, self.spec.split("|")))

    @property
    def gpu(self) -> int:
        """Milli-GPU in all."""
        return self.milli * self.count

    @property
    def shares(self) -> bool:
        """Whether it takes a part of one GPU."""
        return self.count == 1 and self.milli < WHOLE


@dataclass(frozen=True, kw_only=True)
class TypicalTask:
    """A typical task: its part of all tasks, and its needs. `models` empty means any; `count` 0: it needs no GPU."""

    weight: float
    cpu: int
    milli: int
    count: int = 1
    models: frozenset[str] = frozenset()

    def may_use(self, model: str) -> bool:
        return not self.models or model in self.models


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One workload on one fleet. `pods` are indices into `kinds`, in the order of the tasks' names."""

    name: str
    machines: tuple[Machine, ...]
    kinds: tuple[Kind, ...]
    pods: tuple[int, ...]
    typical: tuple[TypicalTask, ...]
    """What every policy may know of the mix: the table that FGD is given."""

    @property
    def capacity(self) -> int:
        """Milli-GPU of the fleet."""
        return WHOLE * sum(machine.gpus for machine in self.machines)


def names(folder: Path) -> list[str]:
    """The traces in a folder, "default" first."""
    found = sorted(path.stem.removeprefix(PODS) for path in folder.glob(f"{PODS}*.csv"))
    return sorted(found, key=lambda name: name != "default")


def read(folder: Path, name: str) -> Trace:
    """One trace.

    Raises:
        BadTrace: if a file is missing or does not hold what it should.
    """
    machines = read_machines(folder / f"{NODES}.csv")
    named = read_pods(folder / f"{PODS}{name.removeprefix(PODS)}.csv")
    ordered = [kind for _, kind in sorted(named, key=lambda pod: pod[0])]
    kinds = tuple(sorted(set(ordered)))
    place = {kind: number for number, kind in enumerate(kinds)}
    return Trace(
        name=name.removeprefix(PODS),
        machines=machines,
        kinds=kinds,
        pods=tuple(place[kind] for kind in ordered),
        typical=typical(ordered),
    )


def read_machines(path: Path) -> tuple[Machine, ...]:
    """The nodes, by name."""
    found = []
    for line, row in enumerate(_rows(path), start=2):
        try:
            machine = Machine(
                name=row["sn"],
                cpu=int(row["cpu_milli"]),
                memory=int(row["memory_mib"]),
                gpus=int(row["gpu"]),
                model=row["model"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadTrace(f"{path.name} line {line}: not a node: {_said(error)}") from error
        if not 0 <= machine.gpus <= MOST_GPUS or min(machine.cpu, machine.memory) < 0:
            raise BadTrace(f"{path.name} line {line}: {machine} is no node of up to {MOST_GPUS} GPUs")
        found.append(machine)
    if not sum(machine.gpus for machine in found):
        raise BadTrace(f"{path.name}: no GPU in it")
    return tuple(sorted(found, key=lambda machine: machine.name))


def _said(error: Exception) -> str:
    return f"there is no column {error}" if isinstance(error, KeyError) else str(error)


def read_pods(path: Path) -> list[tuple[str, Kind]]:
    """The tasks with their names, as they stand."""
    found = []
    for line, row in enumerate(_rows(path), start=2):
        try:
            name, count = row["name"], int(row["num_gpu"])
            kind = Kind(
                cpu=int(row["cpu_milli"]) or LEAST_CPU,
                memory=int(row["memory_mib"]),
                milli=int(row["gpu_milli"]) if count else 0,
                count=count,
                spec=row.get("gpu_spec") or "",
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadTrace(f"{path.name} line {line}: not a task: {_said(error)}") from error
        whole = kind.milli == WHOLE or (count == 1 and 0 < kind.milli < WHOLE)
        if not 0 <= count <= MOST_GPUS or (count and not whole) or min(kind.cpu, kind.memory) < 0:
            raise BadTrace(f"{path.name} line {line}: {kind} is neither whole GPUs nor a share of one")
        found.append((name, kind))
    if not any(kind.gpu for _, kind in found):
        raise BadTrace(f"{path.name}: no task for a GPU in it")
    return found


def typical(pods: list[Kind]) -> tuple[TypicalTask, ...]:
    """The most frequent asks until they stand for COVERED of all tasks, most frequent first; memory is left out."""
    counts = Counter((kind.cpu, kind.milli, kind.count, kind.spec) for kind in pods)
    ordered = sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)
    taken: list[tuple[tuple[int, int, int, str], int]] = []
    for item in ordered:
        if sum(count for _, count in taken) >= COVERED * len(pods):
            break
        taken.append(item)
    total = sum(count for _, count in taken)
    return tuple(
        TypicalTask(
            weight=n / total, cpu=cpu, milli=milli, count=count, models=frozenset(filter(None, spec.split("|")))
        )
        for (cpu, milli, count, spec), n in taken
    )


def altered(folder: Path, name: str) -> list[str]:
    """The files of a trace that are not what was published under their names; others are not known to us."""
    stems = [NODES, f"{PODS}{name.removeprefix(PODS)}"]
    return [stem for stem in stems if stem in DIGESTS and digest(folder / f"{stem}.csv") != DIGESTS[stem]]


def digest(path: Path) -> str:
    """What a file is known by."""
    return sha256(path.read_bytes()).hexdigest()[:32]


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            return list(csv.DictReader(lines))
    except OSError as error:
        raise BadTrace(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadTrace(f"{path} is no table: {error}") from error
