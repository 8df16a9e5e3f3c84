"""How much of a device an engine takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotlight_engine.architectures import shape_of
from pilotlight_engine.memory_plan import (
    GIB,
    EngineAsk,
    UnfitModel,
    kv_tokens_within,
    parameters_of_layer,
    parameters_outside_layers,
    plan_memory,
)
from tests.engine.test_architectures import GPT2, LLAMA

LLAMA_8B = shape_of(LLAMA)
LLAMA_70B = replace(LLAMA_8B, layers=80, hidden=8192, heads=64, intermediate=28_672)


@pytest.mark.parametrize(("shape", "parameters"), [(LLAMA_8B, 8_030_261_248), (LLAMA_70B, 70_553_706_496)])
def test_parameters_are_those_of_the_published_models(shape: object, parameters: int) -> None:
    """To the last one."""
    assert plan_memory(shape, EngineAsk()).parameters == parameters  # type: ignore[arg-type]


def test_gpt2_has_its_biases_besides() -> None:
    """Less than a thousandth of its 124,439,808."""
    shape = shape_of(GPT2)
    total = parameters_outside_layers(shape) + 12 * parameters_of_layer(shape)

    assert 0.999 < total / 124_439_808 < 1


def test_the_keys_and_values_of_a_token() -> None:
    """128 KiB for 8B, 320 KiB for 70B, as bfloat16."""
    assert plan_memory(LLAMA_8B, EngineAsk()).kv_token == 128 * 1024
    assert plan_memory(LLAMA_70B, EngineAsk()).kv_token == 320 * 1024
    assert plan_memory(LLAMA_8B, EngineAsk(kv_dtype="float32")).kv_token == 256 * 1024


def test_weights_are_smaller_quantised_and_split() -> None:
    """Embeddings stay as they are; what is split is split."""
    plain = plan_memory(LLAMA_70B, EngineAsk())
    awq = plan_memory(LLAMA_70B, EngineAsk(quantization="awq"))
    split = plan_memory(LLAMA_70B, EngineAsk(tensor_parallel=8))
    outside = parameters_outside_layers(LLAMA_70B)

    assert plain.weights == plain.parameters * 2
    assert awq.weights == outside * 2 + (plain.parameters - outside) * 4.25 / 8
    assert split.weights == plain.weights // 8
    assert split.kv_token == plain.kv_token // 8
    assert plan_memory(LLAMA_8B, EngineAsk(tensor_parallel=16)).kv_token == 128 * 1024 // 8


def test_the_arithmetic_is_text() -> None:
    """A line for each part; rows and adapters where there are any."""
    memory = plan_memory(LLAMA_8B, EngineAsk(kv_tokens=65_536, rows=True, adapter_bytes=GIB, tensor_parallel=2))
    text = "\n".join(memory.lines())

    assert memory.kv == 2 * 65_536 * 64 * 1024
    assert "8,030,261,248 parameters as bfloat16, over 2 devices" in text
    assert "65,536 tokens x 65,536 bytes x 2 (rows" in text
    assert "adapters" in text
    assert text.endswith("on each device")
    assert memory.total == sum(
        (memory.weights, memory.kv, memory.activations, memory.adapters, memory.context, memory.workspace)
    )


def test_room_for_tokens_is_what_is_left() -> None:
    """On a device of 80 GiB; on one that is too small there is none."""
    tokens = kv_tokens_within(LLAMA_8B, EngineAsk(), 80 * GIB)
    memory = plan_memory(LLAMA_8B, EngineAsk(kv_tokens=tokens))

    assert 0 <= 80 * GIB - memory.total < memory.kv_token
    with pytest.raises(UnfitModel, match="without keys and values"):
        kv_tokens_within(LLAMA_8B, EngineAsk(), 10 * GIB)


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (EngineAsk(dtype="int3"), "dtype is one of"),
        (EngineAsk(kv_dtype="int3"), "dtype is one of"),
        (EngineAsk(quantization="zip"), "quantization is one of fp8, int8, awq, gptq"),
        (EngineAsk(tensor_parallel=0), "tensor_parallel=0"),
        (EngineAsk(tensor_parallel=3), "cannot be split over 3"),
    ],
)
def test_an_ask_has_to_go_with_the_model(ask: EngineAsk, why: str) -> None:
    """It is refused by its field."""
    with pytest.raises(UnfitModel, match=why):
        plan_memory(LLAMA_8B, ask)


def test_a_large_vocabulary_is_the_widest_moment_of_a_small_step() -> None:
    """A large step's is its feed-forward part."""
    few = plan_memory(LLAMA_8B, EngineAsk(token_budget=64, max_running=64))
    many = plan_memory(LLAMA_8B, EngineAsk(token_budget=8192, max_running=64))

    assert few.activations == 3 * 64 * 128_256 * 4
    assert many.activations == 8192 * (4 * 4096 + 3 * 14_336) * 2
