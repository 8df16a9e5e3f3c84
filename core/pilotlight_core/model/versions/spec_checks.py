"""What a specification may say: a deploy is refused where it contradicts itself or exceeds the platform's bounds."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from pilotlight_core.model.artifacts.artifact_entries import ArtifactEntry as ArtifactEntry
from pilotlight_core.model.artifacts.artifact_entries import ArtifactInfo as ArtifactInfo
from pilotlight_core.model.artifacts.artifact_entries import ArtifactKind as ArtifactKind
from pilotlight_core.model.artifacts.artifact_entries import ArtifactPart as ArtifactPart
from pilotlight_core.model.calendar.schedule_entry import Schedule as Schedule
from pilotlight_core.model.calendar.warm_windows import windows_fault
from pilotlight_core.model.engines.engine_spec import engine_fault
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.fallbacks.fallback import Fallback, fallback_fault
from pilotlight_core.model.ids import check_name, tags_fault
from pilotlight_core.model.networks.network_targets import targets_fault
from pilotlight_core.model.pipelines.pipeline import pipeline_fault
from pilotlight_core.model.placing import check_placing
from pilotlight_core.model.rehearsals.rehearsal import rehearsal_fault
from pilotlight_core.model.served.model_names import model_names_fault
from pilotlight_core.model.spec import (
    AMOUNTS,
    LEAST_MEMORY,
    LEAST_PIDS,
    LEAST_TMPFS,
    LONGEST_TIMEOUT_S,
    MAX_ENV_BYTES,
    MAX_LEVEL_MS,
    MAX_METHODS,
    MAX_SCHEMA_BYTES,
    MAX_SCHEMAS_BYTES,
    MOST_MEMORY,
    MOST_PIDS,
    FunctionSpec,
    MethodSpec,
    Mode,
    Priority,
    limit_of,
    max_units_of,
    network_of,
    tags_of,
)
from pilotlight_core.model.streams.resuming import resumable_fault
from pilotlight_core.model.units import is_gpu, memory_text, most_units_fault


def check_spec(spec: FunctionSpec) -> None:
    """Refuse a spec that contradicts itself or exceeds the platform's bounds.

    Raises:
        BadInput: naming the field.
    """
    check_name(spec.name, "function")
    _check_fallback(spec.fallback)
    of_memory = f"1 MiB to memory= ({memory_text(spec.memory)})"
    zero_window = spec.scaledown_window if spec.zero_window is UNSET else spec.zero_window
    rules: tuple[tuple[bool, str, str], ...] = (
        (bool(spec.module) and len(spec.module) < 256, "module", "a module name"),
        (0 < len(spec.methods) <= MAX_METHODS, "methods", f"1 to {MAX_METHODS} methods"),
        (spec.cpu is None or 0.1 <= spec.cpu <= 256, "cpu", "0.1 to 256 cores"),
        (LEAST_MEMORY <= spec.memory <= MOST_MEMORY, "memory", "64 MiB to 16 TiB"),
        (spec.shm is UNSET or LEAST_TMPFS <= spec.shm <= spec.memory, "shm", of_memory),
        (spec.scratch is UNSET or LEAST_TMPFS <= spec.scratch <= spec.memory, "scratch", of_memory),
        (spec.pids is UNSET or LEAST_PIDS <= spec.pids <= MOST_PIDS, "pids", f"{LEAST_PIDS} to {MOST_PIDS}"),
        (0 < spec.timeout <= LONGEST_TIMEOUT_S, "timeout", "more than 0 and at most 86400 seconds"),
        (0 < spec.startup_timeout <= LONGEST_TIMEOUT_S, "startup_timeout", "more than 0 and at most 86400 seconds"),
        (0 <= spec.retries <= 10, "retries", "0 to 10"),
        (0 <= spec.min_containers <= 1_000, "min_containers", "0 to 1000"),
        (1 <= spec.max_containers <= 10_000, "max_containers", "1 to 10000"),
        (spec.min_containers <= spec.max_containers, "min_containers", "at most max_containers"),
        (0 <= spec.buffer_containers <= 1_000, "buffer_containers", "0 to 1000"),
        (0 <= spec.scaledown_window <= 86_400, "scaledown_window", "0 to 86400 seconds"),
        (spec.scaledown_window <= zero_window <= 86_400, "zero_window", "scaledown_window to 86400 seconds"),
        (1 <= spec.max_inputs <= 10_000, "max_inputs", "1 to 10000"),
        (sum(len(k) + len(v) for k, v in spec.env.items()) <= MAX_ENV_BYTES, "env", "at most 32 KiB in all"),
        (spec.vram is None or 0 < spec.vram <= 2**42, "vram", "more than 0 and at most 4 TiB"),
        (len(spec.gpu) <= 16, "gpu", "at most 16 choices"),
        (all(map(is_gpu, spec.gpu)), "gpu", 'GPUs such as "H100" or "H100:2", up to 99'),
        (all(map(_is_level, msgspec.structs.astuple(spec.slo))), "slo", "milliseconds, more than 0"),
    )
    for ok, field, expected in rules:
        if not ok:
            value = getattr(spec, field)
            given = memory_text(value) if field in AMOUNTS else repr(value)
            raise BadInput(f"{spec.name}: {field}={given} is out of range: expected {expected}.", field=field)
    if (named := limit_of(spec.shm) + limit_of(spec.scratch)) > spec.memory:
        raise BadInput(
            f"{spec.name}: shm= and scratch= are together {memory_text(named)}, more than "
            f"memory={memory_text(spec.memory)}: both live in memory and count into it. Raise memory=.", field="memory",
        )  # fmt: skip
    faults = {
        "tags": tags_fault(tags_of(spec)),
        "max_units": most_units_fault(max_units_of(spec)),
        "network": targets_fault(network_of(spec)),
        "warm": "" if spec.warm is UNSET else windows_fault(spec.warm, spec.max_containers),
        "resumable": resumable_fault(spec.resumable, {method.mode for method in spec.methods}),
        "hook": "" if spec.hook is UNSET else "companions are made by the platform",
        "pipeline": _pipeline_fault(spec),
        "serves": "" if spec.serves is UNSET else model_names_fault(spec.serves),
        "fallback": fallback_fault(spec.fallback, spec.name, tuple(Priority)),
    }
    for field, why in (faults | _faults_of_parts(spec)).items():
        if why:
            raise BadInput(f"{spec.name}: {field}: {why}.", field=field)
    for level in ("ttft_ms", "itl_ms"):
        if getattr(spec.slo, level) is not None and spec.engine is UNSET:
            raise BadInput(
                f"{spec.name}: SLO({level}=) is of an engine's tokens, and this function is none: "
                "use SLO(p95_ms=), or engine=.", field="slo",
            )  # fmt: skip
    check_placing(
        spec.placing,
        function=spec.name,
        gives_vram=spec.vram is not None,
        takes_gpu=any(choice.type != "CPU" for choice in spec.gpu),
    )
    for method in spec.methods:
        _check_method(spec, method)
    if sum(map(_schema_bytes, spec.methods)) > MAX_SCHEMAS_BYTES:
        raise BadInput(f"{spec.name}: the schemas of its methods are together larger than 256 KiB.", field="methods")


def _faults_of_parts(spec: FunctionSpec) -> dict[str, str]:
    """What is wrong with its rehearsal and its engine, by field."""
    faults: dict[str, str] = {}
    batches = {one.name: one.batching.max_batch_size if one.batching else 0 for one in spec.methods}
    if spec.rehearsal is not UNSET:
        at_fault, faults[at_fault] = rehearsal_fault(spec.rehearsal, batches)
    if spec.engine is not UNSET:
        code = (spec.module, spec.qualname)
        at_fault, faults[at_fault] = engine_fault(
            spec.engine, gpus=spec.gpus, code=code, methods=list(batches), batched=any(batches.values())
        )
    return faults


def _pipeline_fault(spec: FunctionSpec) -> str:
    if spec.pipeline is UNSET:
        return ""
    if spec.engine is not UNSET:
        return "a function with an engine has no code of its own, and no hooks"
    yields = {method.name: method.mode is Mode.GENERATOR for method in spec.methods}
    return pipeline_fault(spec.pipeline, spec.name if spec.is_class else "", yields)


def _is_level(level: float | None) -> bool:
    return level is None or 0 < level <= MAX_LEVEL_MS


def _schema_bytes(method: MethodSpec) -> int:
    return len(msgspec.json.encode((method.input_schema, method.output_schema)))


def _check_fallback(fallback: Fallback | UnsetType) -> None:
    if fallback is not UNSET:
        check_name(fallback.function, "fallback")
        for tier in fallback.tiers:
            check_name(tier, "tier")


def _check_method(spec: FunctionSpec, method: MethodSpec) -> None:
    if method.name:
        check_name(method.name, "method")
    if _schema_bytes(method) > MAX_SCHEMA_BYTES:
        raise BadInput(f"{spec.name}: the schemas of {method.attribute} are larger than 64 KiB.", field="input_schema")
    if (batching := method.batching) is None:
        return
    if not 1 <= batching.max_batch_size <= 1000:
        raise BadInput(f"{spec.name}: max_batch_size must be 1 to 1000.", field="max_batch_size")
    if not 0 <= batching.wait_ms <= 600_000:
        raise BadInput(f"{spec.name}: wait_ms must be 0 to 600000.", field="wait_ms")
    if method.mode is Mode.GENERATOR:
        raise BadInput(f"{spec.name}: a generator cannot be batched.", field="batched")
