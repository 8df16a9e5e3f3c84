"""How much of a device's memory an engine takes, from the model's `config.json`, with the arithmetic as text.

It is an estimate made before anything is loaded, for placing and for refusals. Weights, and keys and values, are exact
but for padding; activations are an upper bound for a step; the context and the workspace are what was seen of others,
and are the place for a measured overhead.
"""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_engine.architectures import ModelShape

MIB = 1 << 20
GIB = 1 << 30
CONTEXT_BYTES = 512 * MIB
"""What a process takes on a device before it does anything: about half a GiB with CUDA."""
WORKSPACE_BYTES = 128 * MIB
"""What libraries of matrix products keep for themselves: on a CPU, of small models, weights in an order of theirs."""

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
QUANTIZED_BITS = {"": 0.0, "fp8": 8.0, "int8": 8.0, "awq": 4.25, "gptq": 4.25}
"""Bits of a weight of a layer, scales included (4 bits and, for 128 of them, 16 bits of scale and of zero). Embeddings
and the last layer stay as they are."""


class UnfitModel(Exception):
    """A model that cannot be run as it is asked for; the text says why, with numbers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineAsk:
    """How an engine is to run a model."""

    dtype: str = "bfloat16"
    quantization: str = ""
    kv_dtype: str = ""
    """Of keys and values; empty is `dtype`."""
    tensor_parallel: int = 1
    """Over how many devices each layer is split."""
    kv_tokens: int = 0
    """How many tokens' keys and values are stored."""
    token_budget: int = 512
    max_running: int = 64
    adapter_bytes: int = 0
    rows: bool = False
    """Keys and values of decoding sequences are stored once more, as the engine on torch does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineMemory:
    """Bytes on each of the devices, by what takes them."""

    parameters: int
    """How many weights the model has, over all devices."""
    weights: int
    kv_token: int
    """Of one token, all layers."""
    kv: int
    activations: int
    adapters: int
    context: int
    workspace: int
    ask: EngineAsk

    @property
    def total(self) -> int:
        """All of it."""
        return self.fixed + self.kv

    @property
    def fixed(self) -> int:
        """What is taken whatever is stored."""
        return self.weights + self.activations + self.adapters + self.context + self.workspace

    def lines(self) -> list[str]:
        """The arithmetic, a line for each part."""
        ask = self.ask
        split = f", over {ask.tensor_parallel} devices" if ask.tensor_parallel > 1 else ""
        stored = f"{ask.quantization} with {ask.dtype} embeddings" if ask.quantization else ask.dtype
        twice = " x 2 (rows of decoding sequences)" if ask.rows else ""
        lines = [
            f"weights      {_size(self.weights)}  {self.parameters:,} parameters as {stored}{split}",
            f"kv           {_size(self.kv)}  {ask.kv_tokens:,} tokens x {self.kv_token:,} bytes{twice}",
            f"activations  {_size(self.activations)}  a step of {ask.token_budget:,} tokens, {ask.max_running} drawn",
            f"context      {_size(self.context)}  the process on its device",
            f"workspace    {_size(self.workspace)}  of matrix products",
        ]
        if self.adapters:
            lines.append(f"adapters     {_size(self.adapters)}  at most, the longest unused go first")
        return [
            *lines,
            f"total        {_size(self.total)}  on each device" if split else f"total        {_size(self.total)}",
        ]


def plan_memory(shape: ModelShape, ask: EngineAsk) -> EngineMemory:
    """What an engine takes. Raises `UnfitModel` where it cannot be run like that."""
    check_ask(shape, ask)
    parts = ask.tensor_parallel
    wide = DTYPE_BYTES[ask.dtype]
    outside, inside = parameters_outside_layers(shape), parameters_of_layer(shape) * shape.layers
    layer_bytes = inside * (QUANTIZED_BITS[ask.quantization] / 8 if ask.quantization else wide)
    kv_heads = max(1, shape.kv_heads // parts)  # fewer heads than devices: each has one, and some have the same
    kv_token = 2 * shape.layers * kv_heads * shape.head_size * DTYPE_BYTES[ask.kv_dtype or ask.dtype]
    return EngineMemory(
        parameters=outside + inside,
        weights=int((outside * wide + layer_bytes) / parts),
        kv_token=kv_token,
        kv=ask.kv_tokens * kv_token * (2 if ask.rows else 1),
        activations=_activations(shape, ask),
        adapters=ask.adapter_bytes,
        context=CONTEXT_BYTES,
        workspace=WORKSPACE_BYTES,
        ask=ask,
    )


def check_ask(shape: ModelShape, ask: EngineAsk) -> None:
    """Raise `UnfitModel` where the fields of an ask do not go with the model."""
    for named in (ask.dtype, ask.kv_dtype or ask.dtype):
        if named not in DTYPE_BYTES:
            raise UnfitModel(f"dtype is one of {', '.join(DTYPE_BYTES)}, not {named}")
    if ask.quantization not in QUANTIZED_BITS:
        known = ", ".join(name for name in QUANTIZED_BITS if name)
        raise UnfitModel(f"quantization is one of {known}, or nothing, not {ask.quantization}")
    parts = ask.tensor_parallel
    if parts < 1 or shape.heads % parts or (shape.kv_heads % parts and parts % shape.kv_heads):
        text = f"{shape.heads} heads and {shape.kv_heads} key heads cannot be split over {parts} devices"
        raise UnfitModel(f"tensor_parallel={parts}: {text}")


def kv_tokens_within(shape: ModelShape, ask: EngineAsk, device_bytes: int) -> int:
    """How many tokens' keys and values a device has room for beside all else. Raises `UnfitModel`, with the
    arithmetic, where not one sequence of the model's fits at all.
    """
    memory = plan_memory(shape, ask)
    tokens = (device_bytes - memory.fixed) // (memory.kv_token * (2 if ask.rows else 1))
    if tokens < 1:
        text = f"the device has {_size(device_bytes)}; without keys and values the engine takes {_size(memory.fixed)}"
        raise UnfitModel("\n".join([text, *memory.lines()]))
    return tokens


def parameters_of_layer(shape: ModelShape) -> int:
    """The weights of one layer: attention, the feed-forward part, and two norms."""
    attention = shape.hidden * shape.head_size * (2 * shape.heads + 2 * shape.kv_heads)
    forward = shape.hidden * shape.intermediate * (3 if shape.gated else 2)
    return attention + forward + 2 * shape.hidden


def parameters_outside_layers(shape: ModelShape) -> int:
    """The embeddings, the last layer where it is not they, and the last norm."""
    embeddings = shape.vocabulary * shape.hidden * (1 if shape.tied else 2)
    positions = 0 if shape.gated else shape.max_sequence * shape.hidden
    return embeddings + positions + shape.hidden


def _activations(shape: ModelShape, ask: EngineAsk) -> int:
    """The widest moment of a step: a layer's inputs and feed-forward part, or the logits, whichever is more."""
    wide = DTYPE_BYTES[ask.dtype]
    layer = ask.token_budget * (4 * shape.hidden + 3 * shape.intermediate // ask.tensor_parallel) * wide
    logits = 3 * min(ask.max_running, ask.token_budget) * shape.vocabulary * 4  # as float32: raw, filtered, drawn
    return max(layer, logits)


def _size(count: int) -> str:
    return f"{count / GIB:8.2f} GiB" if count >= GIB else f"{count / MIB:8.2f} MiB"
