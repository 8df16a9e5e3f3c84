"""What a function may say of its engine."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.model.engines.engine_spec import (
    ENGINE_CLASS,
    ENGINE_MODULE,
    EngineKind,
    EngineSpec,
    engine_fault,
)

TORCH = EngineSpec(kind=EngineKind.TORCH, weights="tiny")
VLLM = replace(TORCH, kind=EngineKind.VLLM)


def fault(engine: EngineSpec, **changes: Any) -> str:
    asked: dict[str, Any] = {
        "gpus": 0, "code": (ENGINE_MODULE, ENGINE_CLASS), "methods": ("generate", "embed"), "batched": False,
    }  # fmt: skip
    return engine_fault(engine, **{**asked, **changes})[1]


def test_an_engine_names_its_weights() -> None:
    spec = replace(TORCH, adapters=("legal", "medical"))

    assert fault(spec) == ""
    assert spec.weights_names == ("tiny", "legal", "medical")
    assert EngineSpec(kind=EngineKind.SIM).weights_names == ()


@pytest.mark.parametrize(
    ("engine", "changes", "text"),
    [
        (TORCH, {"code": ("app", "Chat")}, "has no code of its own"),
        (TORCH, {"batched": True}, "leave @batched out"),
        (TORCH, {"methods": ("say",)}, "no 'say'"),
        (replace(TORCH, weights=""), {}, "pilotlight weights push"),
        (replace(TORCH, dtype="fp8"), {}, "dtype='fp8' is not known"),
        (replace(TORCH, quantization="awq"), {"gpus": 1}, "no kernel in torch: leave it out, or use VLLM()"),
        (replace(VLLM, quantization="int3"), {"gpus": 1}, "no kernel in vllm: expected one of awq"),
        (VLLM, {}, "VLLM\\(\\) runs on GPUs"),
        (replace(VLLM, quantization="awq"), {}, "has kernels for GPUs only"),
        (TORCH, {"gpus": 2}, "one device"),
        (replace(VLLM, tensor_parallel=2), {"gpus": 1}, "tensor_parallel=2, and gpu= asks for 1 GPUs"),
        (EngineSpec(kind=EngineKind.SIM, adapters=("a",)), {}, "adapters change a model"),
        (replace(TORCH, max_sequences=0), {}, "max_sequences= is 0: expected 1 to 1024"),
        (replace(TORCH, max_tokens_per_step=8), {}, "leaves no token for some of max_sequences=16"),
        (replace(TORCH, adapters=("tiny",)), {}, "'tiny' is named twice"),
        (replace(TORCH, adapters=tuple(f"a{n}" for n in range(32))), {}, "32 adapters: expected at most 31"),
    ],
)
def test_what_contradicts_itself_is_refused(engine: EngineSpec, changes: dict[str, Any], text: str) -> None:
    assert re.search(text, fault(engine, **changes))


def test_several_gpus_share_a_model_in_vllm() -> None:
    assert fault(replace(VLLM, tensor_parallel=2, quantization="awq"), gpus=2) == ""
