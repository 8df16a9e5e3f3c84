"""The arithmetic of device memory, line by line."""

from __future__ import annotations

import pytest

from pilotlight_core.model.placing import CONTEXT_BYTES, Model
from pilotlight_placement.asks.vram import GIB, declared, memory_plan, shortfall

LLAMA_8B = Model(parameters=8.03e9, layers=32, kv_heads=8, head_size=128, hidden=4096)


def test_a_known_model_needs_what_its_card_says() -> None:
    """Llama-3-8B in bf16: 15 GiB of weights; 128 KiB of KV cache a token."""
    made = memory_plan(LLAMA_8B, concurrency=16, context_tokens=8192, batch_tokens=2048)
    by_name = {row.what: row.bytes for row in made.rows}

    assert by_name["weights"] == 16_060_000_000
    assert by_name["KV cache"] == 128 * 1024 * 8192 * 16 == 16 * GIB
    assert by_name["activations"] == 2048 * 4096 * 8 * 2
    assert by_name["context"] == CONTEXT_BYTES
    assert made.total == made.per_device == sum(by_name.values())


def test_each_line_shows_its_arithmetic() -> None:
    """So that a refusal can be checked by hand; the sum stands last."""
    lines = memory_plan(LLAMA_8B, concurrency=16, context_tokens=8192).lines()

    assert "8.03 G parameters x 2 B (bf16)" in lines[0]
    assert "2 x 32 layers x 8 KV heads x 128 x 2 B x 8192 tokens x 16 contexts" in lines[1]
    assert lines[-1].startswith("total")


def test_several_devices_share_all_but_the_context() -> None:
    """Tensor parallelism splits weights, cache and activations."""
    one = memory_plan(LLAMA_8B, concurrency=8, context_tokens=4096)
    four = memory_plan(LLAMA_8B, concurrency=8, context_tokens=4096, devices=4)

    assert four.per_device - CONTEXT_BYTES == pytest.approx((one.per_device - CONTEXT_BYTES) / 4, abs=4)
    assert "on each of 4 GPUs" in four.lines()[-1]


def test_quantised_weights_take_less_and_the_cache_its_own() -> None:
    """int4 is half a byte a parameter."""
    made = memory_plan(Model(parameters=70e9, precision="int4", activations=GIB))

    assert made.rows[0].bytes == 35_000_000_000
    assert made.rows[1].arithmetic == "measured"
    assert len(made.rows) == 3  # without layers there is no KV cache


def test_what_is_missing_on_the_largest_slice_is_shown() -> None:
    """Or what remains."""
    lines = shortfall(declared(100 * GIB), 80 * GIB, "a whole H100-80GB")

    assert lines[-1].endswith("a whole H100-80GB: 20.00 GiB are missing")
    assert lines[0].endswith("= vram=100.00 GiB")
    assert shortfall(declared(100 * GIB, devices=2), 80 * GIB, "one of two")[-1].endswith("30.00 GiB remain")
