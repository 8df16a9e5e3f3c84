"""Numbers of positions, from a table."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from pilotlight_engine.transformer import rotary_table
from pilotlight_engine.transformer.rotary_table import RotaryTable


def rotary(**parameters: Any) -> Any:
    config = LlamaConfig(hidden_size=32, num_attention_heads=2, max_position_embeddings=64)
    config.rope_parameters = {"rope_type": "default", "rope_theta": 10_000.0, **parameters}
    return LlamaRotaryEmbedding(config)


@pytest.mark.parametrize(
    "parameters", [{}, {"rope_type": "linear", "factor": 2.0}, {"rope_type": "dynamic", "factor": 2.0}]
)
def test_they_are_those_of_the_model(parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As the table grows, beyond it, and of a kind that has none; the first half of sines is negative."""
    monkeypatch.setattr(rotary_table, "LEAST", 4)
    monkeypatch.setattr(rotary_table, "MOST", 50)
    own, table = rotary(**parameters), RotaryTable(rotary(**parameters))
    for positions in ([0, 3], [2], [40, 1], [70, 0]):
        at = torch.tensor(positions)
        cos, sin = own(torch.empty(0), position_ids=at[None])
        found_cos, found_sin = table.at(at, max(positions) + 1)
        assert torch.equal(found_cos[:, 0], cos[0])
        assert torch.equal(found_sin[:, 0, :8], -sin[0, :, :8])
        assert torch.equal(found_sin[:, 0, 8:], sin[0, :, 8:])


def test_a_table_is_computed_once() -> None:
    """Until a sequence is longer."""
    calls: list[int] = []

    class Noted:
        rope_type = "default"

        def __call__(self, _: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            calls.append(position_ids.shape[1])
            return torch.zeros(*position_ids.shape, 4), torch.zeros(*position_ids.shape, 4)

    table = RotaryTable(Noted())
    for longest in (1, 100, 512, 513, 600):
        table.at(torch.tensor([longest - 1]), longest)

    assert calls == [512, 1026]
