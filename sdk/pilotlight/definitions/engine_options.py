"""`engine=`: the values of that option, a class for each engine, and the weights and adapters that they name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pilotlight.definitions.errors import OptionError
from pilotlight_core.model.engines.engine_spec import EngineKind, EngineSpec
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.units import parse_memory
from pilotlight_core.model.versions.pushed_weights import parse_weights


class Torch(msgspec.Struct, frozen=True):
    """The platform's own engine, on GPUs and CPUs: models of the kinds Llama, Qwen2, Qwen3, Mistral, Gemma and GPT-2.

    Raises:
        OptionError: naming the field.
    """

    weights: str
    """The model, as `pilotlight weights push` has stored it: a name, or `name@digest`."""
    dtype: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    """Of the computation. "auto": that of the weights, on a CPU fp32."""
    max_sequences: int = 16
    """Calls that run in one batch."""
    max_tokens_per_step: int = 512
    """Tokens of one step, of prompts and answers together."""
    max_sequence: int | None = None
    """Tokens of one call, prompt and answer. Default: as many as the model was made for."""
    kv_bytes: str | int | None = None
    """Memory of cached keys and values: "2GiB", or MiB. Default: what the container's memory leaves."""
    prefix_cache: bool = True
    """Whether prompts of one tenant that begin alike are computed once."""
    chat_template: str | None = None
    """A jinja template of chats, in the place of that of the weights' files."""
    quantization: str | None = None
    """How the weights are stored in fewer bits. None of them runs here: see VLLM."""
    tensor_parallel: int = 1
    """GPUs that share each layer. One, here: see VLLM."""

    def __post_init__(self) -> None:
        engine_spec(self)


class VLLM(msgspec.Struct, frozen=True):
    """vLLM as the engine, on GPUs: its app names a base environment that has it (`App(base=…)`).

    Raises:
        OptionError: naming the field.
    """

    weights: str
    """The model, as `pilotlight weights push` has stored it: a name, or `name@digest`."""
    dtype: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    """Of the computation."""
    max_sequences: int = 64
    """Calls that run in one batch."""
    max_tokens_per_step: int = 2048
    """Tokens of one step, of prompts and answers together."""
    max_sequence: int | None = None
    """Tokens of one call, prompt and answer. Default: as many as the model was made for."""
    kv_bytes: str | int | None = None
    """Memory of cached keys and values: "20GiB", or MiB. Default: what the container's memory leaves."""
    prefix_cache: bool = True
    """Whether prompts of one tenant that begin alike are computed once."""
    chat_template: str | None = None
    """A jinja template of chats, in the place of that of the weights' files."""
    quantization: str | None = None
    """How the weights are stored in fewer bits, such as "awq" or "fp8". Default: they are not."""
    tensor_parallel: int = 1
    """GPUs that share each layer: as many as gpu= asks for."""

    def __post_init__(self) -> None:
        engine_spec(self)


class Sim(msgspec.Struct, frozen=True):
    """No model: an engine whose tokens are computed of the prompt, for tests of what calls it. Needs no torch.

    Raises:
        OptionError: naming the field.
    """

    weights: str | None = None
    """Weights whose tokenizer it takes. Default: each byte is a token."""
    max_sequences: int = 16
    """Calls that run in one batch."""
    max_tokens_per_step: int = 512
    """Tokens of one step, of prompts and answers together."""
    max_sequence: int | None = None
    """Tokens of one call, prompt and answer. Default: 4096."""
    kv_bytes: str | int | None = None
    """Memory of cached keys and values. Default: as much as all calls may need."""
    prefix_cache: bool = True
    """Whether prompts of one tenant that begin alike are computed once."""
    chat_template: str | None = None
    """A jinja template of chats."""
    step_ms: float = 0.0
    """How long a step takes."""

    def __post_init__(self) -> None:
        engine_spec(self)


EngineOption = Torch | VLLM | Sim
KINDS: dict[type[Any], EngineKind] = {Torch: EngineKind.TORCH, VLLM: EngineKind.VLLM, Sim: EngineKind.SIM}


def engine_of(options: Mapping[str, Any]) -> EngineOption | None:
    """Return the engine among the options of a function.

    Raises:
        OptionError: if it is none, or there are `adapters` without it.
    """
    engine = options.get("engine")
    if engine is None:
        if options.get("adapters"):
            raise OptionError("adapters= are of an engine: say which with engine=Torch(…).", field="adapters")
        return None
    if not isinstance(engine, Torch | VLLM | Sim):
        raise OptionError(
            f'engine={engine!r}: expected Torch("name-of-weights"), VLLM("name-of-weights") or Sim().', field="engine"
        )
    return engine


def engine_weights(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the weights that the engine among the options and its adapters are, each `name` or `name@digest`.

    Raises:
        OptionError: if one is no such name.
    """
    engine = engine_of(options)
    if engine is None:
        return ()
    model = (engine.weights,) if engine.weights else ()
    adapters = options.get("adapters") or ()
    if not isinstance(adapters, list | tuple) or not all(isinstance(one, str) for one in adapters):
        raise OptionError(
            f'adapters={adapters!r}: expected a list of names of weights, such as ["legal", "medical"].',
            field="adapters",
        )
    for name in adapters:
        _name(name, "adapters")
    return (*model, *adapters)


def engine_spec(engine: EngineOption, adapters: tuple[str, ...] = ()) -> EngineSpec:
    """Return an engine as a specification has it. `adapters` are names of weights, with digests or not.

    Raises:
        OptionError: naming the field.
    """
    fields = {name: getattr(engine, name) for name in engine.__struct_fields__}
    kind = KINDS[type(engine)]
    try:
        if fields["kv_bytes"] is not None:
            fields["kv_bytes"] = parse_memory(fields["kv_bytes"], "kv_bytes")
        if fields["weights"] is not None:
            fields["weights"] = _name(fields["weights"], "weights")
        given = {name: value for name, value in fields.items() if value is not None}
        adapted = tuple(_name(name, "adapters") for name in adapters)
        return msgspec.convert({"kind": kind.value, "adapters": adapted, **given}, EngineSpec)
    except (BadInput, msgspec.ValidationError) as error:
        text = error.detail if isinstance(error, BadInput) else f"{error}."
        raise OptionError(f"engine={type(engine).__name__}(…): {text}", field="engine") from None


def _name(text: str, field: str) -> str:
    """The name of weights without its digest. Raises OptionError."""
    try:
        return parse_weights(text, field).name
    except BadInput as error:
        raise OptionError(error.detail, field=field) from None
