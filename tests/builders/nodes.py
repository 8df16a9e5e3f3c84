"""What a node tells of itself and is told: its slices, GPUs and containers, one of each unless a test says more."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.devices import DeviceReport, MigMode
from pilotlight_core.model.messages.bindings import Binding
from pilotlight_core.model.messages.node_messages import (
    Bind,
    ContainerReport,
    ContainerState,
    HostShare,
    NodeReport,
    SandboxCeilings,
    SliceKind,
    SliceReport,
)

GIB = 2**30
SHARE = HostShare(cpu_millis=1000, memory=2 * GIB)
"""What a container is promised, unless a test says otherwise: enough for a function that names nothing."""


CEILINGS = SandboxCeilings(shm=GIB, scratch=GIB, pids=1024)
"""What functions may ask for at most."""


def cpu_slot(number: int = 0, **more: Any) -> SliceReport:
    """A quarter of the node's processors."""
    fields: dict[str, Any] = {"ppm": 250_000, "price": "cpu", "memory": 8 * GIB} | more
    return SliceReport(id=f"cpu-{number}", kind=SliceKind.CPU, device="cpu", **fields)


def gpu_slice(name: str = "GPU-1", **more: Any) -> SliceReport:
    """A whole GPU; with another `kind` and `device`, a part of one."""
    fields: dict[str, Any] = {"kind": SliceKind.GPU, "device": name, "ppm": 1_000_000, "price": "h100"} | more
    return SliceReport(id=name, **fields)


def gpu_device(name: str = "GPU-1", kind: str = "H100", gib: int = 80, **more: Any) -> DeviceReport:
    """A GPU that could be cut, and is not."""
    fields: dict[str, Any] = {"name": kind, "price": kind.lower(), "mig": MigMode.OFF} | more
    return DeviceReport(id=name, type=kind, memory=gib * GIB, **fields)


def container(name: str = "c1", version: str = "ver_1", **more: Any) -> ContainerReport:
    """A container that is ready and idle, on the first CPU slot."""
    fields: dict[str, Any] = {
        "tenant": "acme", "app": "hello", "function": "greet", "slice": "cpu-0", "state": ContainerState.READY,
        "slots": 1, "running": 0, "age_s": 100.0, "idle_s": 0.0,
    }  # fmt: skip
    return ContainerReport(id=name, version=version, **fields | more)


def node_report(node: str = "n1", seq: int = 1, **more: Any) -> NodeReport:
    """A node's report; without `slices` it offers nothing."""
    fields: dict[str, Any] = {"instance": "i1", "region": "local", "zone": "z", "sandbox": "bubblewrap"} | more
    return NodeReport(node=node, seq=seq, **fields)


def gpu_node(node: str = "n1", seq: int = 1, **more: Any) -> NodeReport:
    """The report of a node with one H100 and one CPU slot."""
    return node_report(node, seq, **{"slices": (cpu_slot(),), "devices": (gpu_device(),)} | more)


def bind(container: str = "c1", version: str = "ver_1", **more: Any) -> Bind:
    """The command to start a container of a version."""
    fields: dict[str, Any] = {
        "epoch": 1,
        "tenant": "acme",
        "manifest_sha256": "00",
        "slice": "cpu-0",
        "host": SHARE,
    } | more
    return Bind(container=container, version=version, **fields)


def binding(container: str = "c1", version: str = "ver_1", **more: Any) -> Binding:
    """What the controller wrote before it sent `bind`."""
    fields: dict[str, Any] = {
        "node": "n1", "tenant": "acme", "function": "acme:hello.greet", "slice": "cpu-0", "ppm": 250_000,
        "price": "cpu", "slots": 1,
    }  # fmt: skip
    return Binding(container=container, version=version, **fields | more)
