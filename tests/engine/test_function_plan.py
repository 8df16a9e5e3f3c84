"""What an engine function takes, by its options and its model's configuration."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight import VLLM, Sim, Torch
from pilotlight.definitions.engines.engine_specs import build_engine_spec
from pilotlight_core.model.engines.engine_spec import UNNAMED_CALL_TOKENS, EngineSpec
from pilotlight_core.model.engines.generation import MOST_EMBEDDED
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_core.model.versions.spec_checks import check_spec
from pilotlight_engine.function_plan import UNNAMED_KV, FunctionPlan, plan_function
from pilotlight_engine.memory_plan import UnfitModel

LLAMA_8B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "max_position_embeddings": 131072,
    "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 128, "intermediate_size": 14336, "torch_dtype": "bfloat16",
}  # fmt: skip
TINY: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"], "vocab_size": 512, "max_position_embeddings": 256, "num_hidden_layers": 2,
    "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 64,
}  # fmt: skip
KV_8B = 131_072
"""Bytes of a token: 2 x 32 layers x 8 heads x 128 x 2."""


def plan(engine: Any, config: dict[str, Any] | None, **options: Any) -> FunctionPlan:
    return plan_function(build_engine_spec({"engine": engine, **options}, "chat"), config)


def engine_of(spec: FunctionSpec) -> EngineSpec:
    assert spec.engine
    return spec.engine


def test_a_gpu_is_asked_for_what_the_model_takes() -> None:
    """Weights, and keys and values of a whole call at least."""
    made = plan(Torch("llama"), LLAMA_8B, gpu="any")

    assert made.longest == 131072
    assert engine_of(made.spec).kv_bytes == 131072 * KV_8B
    assert made.memory is not None
    assert made.spec.vram == made.memory.total
    assert made.memory.weights > 14 * 2**30
    assert "131,072 tokens x 131,072 bytes" in made.text
    check_spec(made.spec)


def test_one_that_may_also_run_on_a_cpu_fits_both() -> None:
    made = plan(Torch("llama", max_sequence=4096), LLAMA_8B, gpu=["any", "cpu"], memory="20GiB")

    assert made.memory is not None
    assert made.spec.vram == made.memory.total
    assert made.memory.total <= 20 * 2**30


def test_shorter_calls_take_less() -> None:
    made = plan(Torch("llama", max_sequence=4096), LLAMA_8B, gpu="any")

    assert engine_of(made.spec).kv_bytes == UNNAMED_KV
    assert made.spec.max_units == {"prompt_tokens": MOST_EMBEDDED, "completion_tokens": 4096, "cached_tokens": 4096}


def test_what_was_named_stands() -> None:
    made = plan(Torch("tiny", kv_bytes="1MiB"), TINY, gpu="any", vram="2GiB", max_units={"completion_tokens": 9})

    assert made.spec.vram == 2 * 2**30
    assert made.spec.max_units == {"completion_tokens": 9}
    assert engine_of(made.spec).kv_bytes <= 2**20


def test_memory_that_was_named_bounds_the_keys_and_values() -> None:
    made = plan(Torch("llama"), LLAMA_8B, gpu="any", vram="20GiB")

    assert made.memory is not None
    assert made.memory.total <= 20 * 2**30
    assert 0 < engine_of(made.spec).kv_bytes < 131072 * KV_8B


@pytest.mark.parametrize(
    ("engine", "config", "options", "text"),
    [
        (Torch("llama"), LLAMA_8B, {}, "the device has .*2.00 GiB; without keys and values"),  # of the host
        (Torch("llama"), LLAMA_8B, {"gpu": "any", "vram": "8GiB"}, "weights +1[0-9.]+ GiB"),
        (Torch("llama", kv_bytes="16GiB"), LLAMA_8B, {"gpu": "any", "vram": "24GiB"}, "kv_bytes= leaves no room"),
        (Torch("tiny"), None, {}, "the weights tiny have no config.json"),
        (Torch("tiny"), {"architectures": ["T5"]}, {}, "names the architecture T5; .* Use VLLM"),
        (VLLM("llama", tensor_parallel=3), LLAMA_8B, {"gpu": "any:3"}, "cannot be split over 3 devices"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_arithmetic(
    engine: Any, config: dict[str, Any] | None, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(UnfitModel, match=text):
        plan(engine, config, **options)


def test_several_gpus_have_a_part_each() -> None:
    made = plan(VLLM("llama", tensor_parallel=2, quantization="fp8", max_sequence=8192), LLAMA_8B, gpu="H100:2")

    assert made.memory is not None
    assert made.spec.vram == 2 * made.memory.total


def test_a_model_that_only_vllm_knows_says_its_memory_itself() -> None:
    made = plan(VLLM("t5"), {"architectures": ["T5"]}, gpu="any", vram="8GiB")

    assert (made.memory, made.text, made.longest) == (None, "", UNNAMED_CALL_TOKENS)
    assert plan(Sim(max_sequence=99), None).longest == 99


def test_a_function_with_code_has_no_plan() -> None:
    with pytest.raises(ValueError, match="has no engine"):
        plan_function(FunctionSpec(name="a", module="a", qualname="a", methods=()), None)


def test_a_type_of_numbers_that_is_none_is_the_widest() -> None:
    assert plan(Torch("tiny"), {**TINY, "torch_dtype": ["float16"]}).spec == plan(Torch("tiny"), TINY).spec
