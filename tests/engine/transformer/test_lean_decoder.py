"""Decodes without the model's modules, against those with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pilotlight_engine.transformer.lean_decoder import LEAN, lean_decoder
from tests.engine.generations import request, run
from tests.engine.transformer.test_torch_engine import NEW, engine, prompts
from tests.engine.transformer.tiny_models import CONFIGS, reference, save_model
from tests.variants import with_variants


@pytest.mark.parametrize(
    ("kind", "changed"),
    with_variants(
        [
            ("llama", {"attention_bias": True}),
            ("qwen2", {}),
            ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10_000.0}}),
            ("qwen3", {"attention_bias": True}),
            ("mistral", {}),
        ],
        2,
    ),
)
def test_it_says_what_the_model_says(kind: str, changed: dict[str, Any], tmp_path: Path) -> None:
    """To the last digits of its logprobs, with biases, windows and every kind of positions."""
    folder = save_model(kind, tmp_path, **changed)
    with torch.no_grad():
        model: Any = reference(folder)
        for path, parameter in model.named_parameters():
            if path.endswith("bias"):
                parameter.normal_()
        model.save_pretrained(folder)
    asked = [request(str(number), ids, NEW, logprobs=1) for number, ids in enumerate(prompts())]
    lean, whole = engine(folder), engine(folder)
    assert lean._lean
    whole._lean = None
    ran, expected = run(lean, *asked), run(whole, *asked)

    assert ran.tokens == expected.tokens
    for each in asked:
        found = [out.logprob for out in ran.outs[each.id]]
        assert found == pytest.approx([out.logprob for out in expected.outs[each.id]], abs=1e-3)


def test_it_takes_no_memory_of_its_own(model_folder: Callable[[str], Path]) -> None:
    """Joined weights are the model's, too."""
    made = engine(model_folder("llama"))
    assert made._lean
    attention = made._model.model.layers[0].self_attn
    joined = made._lean._layers[0].qkv[0].weight

    for projection in (attention.q_proj, attention.k_proj, attention.v_proj):
        assert projection.weight.untyped_storage().data_ptr() == joined.untyped_storage().data_ptr()


def test_other_architectures_and_precisions_have_none(model_folder: Callable[[str], Path]) -> None:
    """They go through the model."""
    for kind, (name, _) in CONFIGS.items():
        model = reference(model_folder(kind))
        assert (lean_decoder(model, name, 4, 2, 8) is not None) == (name in LEAN)

    assert lean_decoder(reference(model_folder("llama")).bfloat16(), "LlamaForCausalLM", 4, 2, 8) is None
