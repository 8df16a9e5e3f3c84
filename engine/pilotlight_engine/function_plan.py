"""What an engine function takes of memory, and how long its calls may be: from its options and its model's config.json.

Made at a deploy, before anything is loaded. What the function leaves open is filled in: the room for keys and values,
the memory of the device, and the most tokens of a call that are billed.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from pilotlight_core.model.engines.engine_spec import EMBED, UNNAMED_CALL_TOKENS, EngineKind, EngineSpec
from pilotlight_core.model.engines.generation import MOST_EMBEDDED
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_engine.architectures import ModelShape, UnknownArchitecture, shape_of
from pilotlight_engine.memory_plan import (
    DTYPE_BYTES,
    EngineAsk,
    EngineMemory,
    UnfitModel,
    kv_tokens_within,
    plan_memory,
)

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
"""As models' files name them."""
UNNAMED_KV = 1 << 30
"""Bytes of keys and values where nothing bounds them: at least one whole call's."""
UNNAMED_SIM_TOKENS = 4096
"""Of a call of a simulated engine that does not say it."""


@dataclass(frozen=True, kw_only=True)
class FunctionPlan:
    """A function with what its engine needs filled in, and the arithmetic."""

    spec: FunctionSpec
    memory: EngineMemory | None = None
    """None: it is not known, as of a simulated one."""
    longest: int
    """Tokens of a call, prompt and answer."""

    @property
    def text(self) -> str:
        """The arithmetic in one line; "": there is none."""
        if self.memory is None:
            return ""
        return "; ".join(" ".join(line.split()) for line in self.memory.lines())


def plan_function(spec: FunctionSpec, config: dict[str, Any] | None) -> FunctionPlan:
    """The plan of a function whose model has this `config.json`; None: its weights have none.

    Raises:
        UnfitModel: the model does not run like that, or does not fit what the function names; with the arithmetic.
    """
    engine = spec.engine
    if engine is UNSET:
        raise ValueError(f"{spec.name} has no engine")
    if engine.kind is EngineKind.SIM:
        return _planned(spec, engine.max_sequence or UNNAMED_SIM_TOKENS)
    shape = _shape(engine, config)
    if shape is None:
        return _planned(spec, engine.max_sequence or UNNAMED_CALL_TOKENS)
    longest = min(engine.max_sequence or shape.max_sequence, shape.max_sequence)
    ask = _ask(engine, config or {})
    each = plan_memory(shape, ask).kv_token
    wanted = engine.kv_bytes // each if engine.kv_bytes else _unnamed_tokens(engine, longest, each)
    there = _device_bytes(spec)
    if there is not None:
        room = kv_tokens_within(shape, ask, there)
        if engine.kv_bytes and wanted > room:
            memory = plan_memory(shape, _with_tokens(ask, wanted))
            raise UnfitModel(
                "\n".join([f"kv_bytes= leaves no room for the rest of {there >> 20} MiB", *memory.lines()])
            )
        wanted = min(wanted, room)
    memory = plan_memory(shape, _with_tokens(ask, wanted))
    filled = replace(spec, engine=replace(engine, kv_bytes=wanted * each))
    if spec.gpus and spec.vram is None:
        filled = replace(filled, vram=memory.total * engine.tensor_parallel)
    return _planned(filled, longest, memory)


def _planned(spec: FunctionSpec, longest: int, memory: EngineMemory | None = None) -> FunctionPlan:
    """With the most that a call is billed for: no kind of token can be more than the longest call has, but for those of
    many texts that are embedded at once.
    """
    if spec.max_units is UNSET:
        embeds = spec.engine is not UNSET and spec.engine.kind is not EngineKind.VLLM
        embeds = embeds and any(method.name == EMBED for method in spec.methods)
        read = max(longest, MOST_EMBEDDED) if embeds else longest
        most = {"prompt_tokens": read, "completion_tokens": longest, "cached_tokens": longest}
        spec = replace(spec, max_units=most)
    return FunctionPlan(spec=spec, memory=memory, longest=longest)


def _shape(engine: EngineSpec, config: dict[str, Any] | None) -> ModelShape | None:
    """None: vLLM may know models that are not known here."""
    if config is None:
        raise UnfitModel(
            f"the weights {engine.weights} have no config.json: push the folder that save_pretrained() made"
        )
    try:
        return shape_of(config)
    except UnknownArchitecture as error:
        if engine.kind is EngineKind.VLLM:
            return None
        raise UnfitModel(str(error)) from error


def _ask(engine: EngineSpec, config: dict[str, Any]) -> EngineAsk:
    stored = config.get("dtype") or config.get("torch_dtype") or "float32"
    dtype = DTYPES.get(engine.dtype) or (stored if isinstance(stored, str) and stored in DTYPE_BYTES else "float32")
    return EngineAsk(
        dtype=dtype,
        quantization=engine.quantization,
        tensor_parallel=engine.tensor_parallel,
        token_budget=engine.max_tokens_per_step,
        max_running=engine.max_sequences,
        rows=engine.kind is EngineKind.TORCH,
    )


def _with_tokens(ask: EngineAsk, tokens: int) -> EngineAsk:
    return dataclasses.replace(ask, kv_tokens=tokens)


def _unnamed_tokens(engine: EngineSpec, longest: int, each: int) -> int:
    """As many as all its calls may need, within UNNAMED_KV; but a whole call."""
    return min(longest * engine.max_sequences, max(longest, UNNAMED_KV // each))


def _device_bytes(spec: FunctionSpec) -> int | None:
    """What the least of its devices has for it: a GPU what it names, a CPU slot the host's memory. None: it is open."""
    rooms = [spec.memory] if not spec.gpu or any(choice.type == "CPU" for choice in spec.gpu) else []
    if spec.gpus and spec.vram is not None:
        rooms.append(spec.vram // spec.gpus)
    return min(rooms, default=None)
