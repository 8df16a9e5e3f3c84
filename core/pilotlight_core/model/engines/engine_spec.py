"""What a function says of the engine that it is: a language model that the platform runs, without code of its own."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

import msgspec

ENGINE_MODULE = "pilotlight_engine.serving.engine_function"
ENGINE_CLASS = "EngineFunction"
"""What containers of an engine function run, in the place of a tenant's code."""
GENERATE, EMBED = "generate", "embed"
"""Its methods."""
DTYPES = ("auto", "bf16", "fp16", "fp32")
MAX_TEMPLATE = 64 * 1024
"""Characters of a chat template."""
MAX_ADAPTERS = 31
"""Of an engine, which are weights of its function beside those of the model."""
MOST_SEQUENCES = 1024
MOST_STEP_TOKENS = 2**17
LONGEST_SEQUENCE = 2**23
MOST_PARALLEL = 16
UNNAMED_CALL_TOKENS = 2**17
"""The most tokens of a call, prompt and answer, where neither its function nor the model's files say it."""


class EngineKind(StrEnum):
    TORCH = "torch"  # the platform's own, on CPUs and GPUs
    VLLM = "vllm"  # vLLM, in a base environment that has it
    SIM = "sim"  # no model: tokens are computed of the prompt, for tests


QUANTIZATIONS: dict[EngineKind, tuple[str, ...]] = {
    EngineKind.TORCH: (),
    EngineKind.VLLM: ("awq", "bitsandbytes", "compressed-tensors", "fp8", "gptq", "gptq_marlin", "modelopt"),
    EngineKind.SIM: (),
}
"""What each has kernels for."""


class EngineSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An engine, the model that it runs, and its bounds."""

    kind: EngineKind
    weights: str = ""
    """The model: a name among the function's weights, without a digest. "": a simulated one needs none."""
    adapters: tuple[str, ...] = ()
    """LoRA adapters over it: names among the function's weights."""
    dtype: str = "auto"
    """Of the computation: one of DTYPES; "auto": that of the weights, on a CPU fp32."""
    quantization: str = ""
    """How the weights are stored in fewer bits; "": they are not."""
    tensor_parallel: int = 1
    """GPUs that share each layer."""
    max_sequences: int = 16
    """Calls that run in one batch."""
    max_tokens_per_step: int = 512
    """Tokens of one step, of prompts and answers together."""
    max_sequence: int = 0
    """Tokens of one call, prompt and answer; 0: as many as the model was made for."""
    kv_bytes: int = 0
    """Of cached keys and values; 0: what the container's memory leaves."""
    prefix_cache: bool = True
    """Whether prompts that begin alike are computed once, of one tenant and one adapter."""
    chat_template: str = ""
    """In the place of that of the weights' files."""
    step_ms: float = 0.0
    """How long a step of a simulated engine takes."""

    @property
    def spare_calls(self) -> int:
        """Calls beyond `max_sequences` that a container takes, of callers that have few there: the engine preempts
        others for them.
        """
        return max(1, self.max_sequences // 4)

    @property
    def weights_names(self) -> tuple[str, ...]:
        """The model and its adapters."""
        return tuple(name for name in (self.weights, *self.adapters) if name)


def engine_fault(
    engine: EngineSpec, *, gpus: int, code: tuple[str, str], methods: Collection[str], batched: bool
) -> tuple[str, str]:
    """What is wrong with an engine of a function, as field and text; ("", ""): nothing.

    `gpus` are the most that a container may have, `code` is its module and class.
    """
    if code != (ENGINE_MODULE, ENGINE_CLASS):
        return "engine", f"a function with an engine has no code of its own: expected {ENGINE_MODULE}.{ENGINE_CLASS}"
    if batched:
        return "engine", "an engine batches by itself, token by token: leave @batched out"
    if unknown := set(methods) - {GENERATE, EMBED}:
        return "methods", f"an engine has the methods {GENERATE} and {EMBED}, and no {min(unknown)!r}"
    if engine.kind is not EngineKind.SIM and not engine.weights:
        return "engine", 'weights= is missing: push the model with "pilotlight weights push NAME FOLDER" and name it'
    if engine.dtype not in DTYPES:
        return "engine", f"dtype={engine.dtype!r} is not known: expected one of {', '.join(DTYPES)}"
    if text := _device_fault(engine, gpus):
        return "engine", text
    if engine.adapters and not engine.weights:
        return "adapters", "adapters change a model: a simulated engine without weights= has none"
    return _bounds_fault(engine)


def _device_fault(engine: EngineSpec, gpus: int) -> str:
    """Why an engine does not run on so many GPUs; "": it does."""
    if engine.quantization and engine.quantization not in QUANTIZATIONS[engine.kind]:
        return _no_kernel(engine)
    if engine.quantization and not gpus:
        return f"quantization={engine.quantization!r} has kernels for GPUs only: say which with gpu="
    if engine.kind is EngineKind.VLLM and not gpus:
        return 'VLLM() runs on GPUs: say which with gpu=, or gpu="any". Torch() runs on CPUs too'
    if engine.kind is EngineKind.TORCH and max(engine.tensor_parallel, gpus) > 1:
        return "Torch() runs a model on one device: for several use VLLM(tensor_parallel=), or gpu= without a number"
    if engine.kind is EngineKind.VLLM and engine.tensor_parallel != gpus:
        return (
            f"tensor_parallel={engine.tensor_parallel}, and gpu= asks for {gpus} GPUs: each of them holds a part "
            'of the model, as VLLM(tensor_parallel=2) with gpu="H100:2"'
        )
    return ""


def _no_kernel(engine: EngineSpec) -> str:
    known = ", ".join(QUANTIZATIONS[engine.kind])
    if known:
        return f"quantization={engine.quantization!r} has no kernel in {engine.kind.value}: expected one of {known}"
    return (
        f"quantization={engine.quantization!r} has no kernel in {engine.kind.value}: leave it out, or use VLLM(), "
        f"which has {', '.join(QUANTIZATIONS[EngineKind.VLLM])}"
    )


def _bounds_fault(engine: EngineSpec) -> tuple[str, str]:
    bounds: tuple[tuple[str, float, float, float], ...] = (
        ("tensor_parallel", engine.tensor_parallel, 1, MOST_PARALLEL),
        ("max_sequences", engine.max_sequences, 1, MOST_SEQUENCES),
        ("max_tokens_per_step", engine.max_tokens_per_step, 1, MOST_STEP_TOKENS),
        ("max_sequence", engine.max_sequence, 0, LONGEST_SEQUENCE),
        ("kv_bytes", engine.kv_bytes, 0, 2**42),
        ("step_ms", engine.step_ms, 0, 60_000),
        ("chat_template", len(engine.chat_template), 0, MAX_TEMPLATE),
    )
    for name, value, least, most in bounds:
        if not least <= value <= most:
            return "engine", f"{name}= is {value:g}: expected {least:g} to {most:g}"
    if engine.max_tokens_per_step < engine.max_sequences:
        return "engine", (
            f"max_tokens_per_step={engine.max_tokens_per_step} leaves no token for some of "
            f"max_sequences={engine.max_sequences}: each takes one in a step"
        )
    if len(engine.adapters) > MAX_ADAPTERS:
        return "adapters", f"{len(engine.adapters)} adapters: expected at most {MAX_ADAPTERS}"
    for name in engine.weights_names:
        if engine.weights_names.count(name) > 1:
            return "adapters", f"{name!r} is named twice"
    return "", ""
