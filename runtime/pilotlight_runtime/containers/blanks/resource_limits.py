"""What a function's container may use, and the text for one that has ended at a limit."""

from __future__ import annotations

import dataclasses
import signal

from pilotlight_core.model.messages.agent_questions import MOST_REQUEST
from pilotlight_core.model.messages.node_messages import SandboxCeilings
from pilotlight_core.model.spec import UNNAMED_CPU_MILLIS, FunctionSpec, Mode, limit_of
from pilotlight_runtime.guest.frames import MAX_CHUNK, MAX_FRAME, MAX_VALUE, SMALL_FRAME
from pilotlight_runtime.sandbox.sandbox_port import SandboxExit
from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits

BASE = ResourceLimits(
    memory_bytes=2 * 2**30,
    pids=512,
    cpu_millis=2000,
    promised_cpu_millis=UNNAMED_CPU_MILLIS,
    tmp_bytes=256 * 2**20,
    shm_bytes=256 * 2**20,
    open_files=4096,
    file_bytes=2**30,
)
"""Of a blank, where no ceiling is lower."""


def blank_limits(most: SandboxCeilings) -> ResourceLimits:
    """Of the blanks of a node; memory, processors and processes become the function's when one is bound."""
    return dataclasses.replace(
        BASE,
        pids=min(BASE.pids, most.pids),
        tmp_bytes=min(BASE.tmp_bytes, most.scratch),
        shm_bytes=min(BASE.shm_bytes, most.shm),
    )


def limits_of(spec: FunctionSpec, unnamed: ResourceLimits) -> ResourceLimits:
    """Of a function's container; what it does not name is as in `unnamed`, the limits of the node's blanks."""
    tmp, shm = limit_of(spec.scratch) or unnamed.tmp_bytes, limit_of(spec.shm) or unnamed.shm_bytes
    return ResourceLimits(
        memory_bytes=spec.memory,
        pids=limit_of(spec.pids) or unnamed.pids,
        cpu_millis=spec.most_cpu_millis,
        promised_cpu_millis=spec.cpu_millis,
        tmp_bytes=tmp,
        shm_bytes=shm,
        open_files=BASE.open_files,
        # One file may fill what it was asked for.
        file_bytes=max(BASE.file_bytes, tmp, shm),
    )


def keeps_file_systems(limits: ResourceLimits, blank: ResourceLimits) -> bool:
    """Whether its file systems have the sizes of a blank's, which no sandbox can change once it has started."""
    return limits.tmp_bytes == blank.tmp_bytes and limits.shm_bytes == blank.shm_bytes


def over_ceiling(spec: FunctionSpec, most: SandboxCeilings) -> str:
    """What a function asks for beyond what a container of this node may have; "" if nothing."""
    shm, scratch, pids = map(limit_of, (spec.shm, spec.scratch, spec.pids))
    if shm > most.shm:
        return f"shm= of {memory_text(shm)}, and this node allows {memory_text(most.shm)}"
    if scratch > most.scratch:
        return f"scratch= of {memory_text(scratch)}, and this node allows {memory_text(most.scratch)}"
    return f"pids={pids}, and this node allows {most.pids}" if pids > most.pids else ""


def frame_limit(spec: FunctionSpec) -> int:
    """Bytes of the largest frame that its guest has a reason to send."""
    if any(method.batching is not None for method in spec.methods):
        return MAX_FRAME
    streams_only = all(method.mode is Mode.GENERATOR for method in spec.methods)
    return SMALL_FRAME + (max(MAX_CHUNK, MOST_REQUEST) if streams_only else MAX_VALUE)


def memory_text(size: int) -> str:
    """`2.0 GiB`, `512 MiB`."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def describe(end: SandboxExit, limits: ResourceLimits) -> str:
    """A container's end, for people."""
    if end.reason == "memory":
        return f"memory limit of {memory_text(limits.memory_bytes)} reached (memory= raises it)"
    if end.reason == "pids":
        return f"limit of {limits.pids} processes and threads reached (pids= raises it), then {_code(end)}"
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
