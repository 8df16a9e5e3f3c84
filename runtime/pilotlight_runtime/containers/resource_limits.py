"""What a function's container may use, and the text for one that has ended at a limit."""

from __future__ import annotations

import signal
from dataclasses import replace

from pilotlight_core.model.spec import UNNAMED_CPU_MILLIS, FunctionSpec, Mode
from pilotlight_runtime.guest.frames import MAX_CHUNK, MAX_FRAME, MAX_VALUE, SMALL_FRAME
from pilotlight_runtime.sandbox.sandbox_port import SandboxExit
from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits

BASE = ResourceLimits(
    memory_bytes=2 * 2**30,
    pids=512,
    cpu_millis=2000,
    promised_cpu_millis=UNNAMED_CPU_MILLIS,
    tmp_bytes=256 * 2**20,
    open_files=4096,
    file_bytes=2**30,
)
"""Of a blank; memory and processors become the function's when it is bound."""


def limits_of(spec: FunctionSpec) -> ResourceLimits:
    return replace(BASE, memory_bytes=spec.memory, cpu_millis=spec.most_cpu_millis, promised_cpu_millis=spec.cpu_millis)


def frame_limit(spec: FunctionSpec) -> int:
    """Bytes of the largest frame that its guest has a reason to send."""
    if any(method.batching is not None for method in spec.methods):
        return MAX_FRAME
    streams_only = all(method.mode is Mode.GENERATOR for method in spec.methods)
    return SMALL_FRAME + (MAX_CHUNK if streams_only else MAX_VALUE)


def memory_text(size: int) -> str:
    """`2.0 GiB`, `512 MiB`."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def describe(end: SandboxExit, spec: FunctionSpec | None) -> str:
    """A container's end, for people."""
    memory = spec.memory if spec is not None else BASE.memory_bytes
    if end.reason == "memory":
        return f"memory limit of {memory_text(memory)} reached (memory= raises it)"
    if end.reason == "pids":
        return f"limit of {BASE.pids} processes and threads reached, then {_code(end)}"
    if end.reason == "setup":
        return f"the sandbox could not be set up ({_code(end)})"
    if end.reason == "killed":
        return "killed by the platform"
    return _code(end)


def _code(end: SandboxExit) -> str:
    if end.signal is None:
        return f"exit code {end.code}"
    try:
        name = signal.Signals(end.signal).name
    except ValueError:
        name = "unknown signal"
    return f"exit code {128 + end.signal} ({name})"
