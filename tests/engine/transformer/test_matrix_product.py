"""Products with weights in oneDNN's order."""

from __future__ import annotations

import pytest
import torch

from pilotlight_engine.transformer import matrix_product
from pilotlight_engine.transformer.matrix_product import FEW_ROWS, may_pack, product


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("rows", [1, FEW_ROWS, 100])
@torch.inference_mode()
def test_it_is_the_product(rows: int, is_packed: bool, with_bias: bool) -> None:
    """Packed or not, of few rows and many, with what is added; what is added to stays as it was."""
    torch.manual_seed(0)
    weight, given, hidden = torch.randn(48, 32), torch.randn(rows, 32), torch.randn(rows, 48)
    bias, before = torch.randn(48) if with_bias else None, hidden.clone()
    made = product(weight, bias, is_packed=is_packed and may_pack([weight]))
    expected = given @ weight.T + (0 if bias is None else bias)

    assert torch.allclose(made.of(given), expected, atol=1e-4)
    assert torch.allclose(made.added_to(hidden, given), hidden + expected, atol=1e-4)
    assert torch.equal(hidden, before)


def test_large_models_have_their_weights_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so have all where torch has no oneDNN, or calls its operations otherwise."""
    weights = [torch.zeros(1000), torch.zeros(1000)]
    monkeypatch.setattr(matrix_product, "MOST_PACKED", 8000)
    assert may_pack(weights)
    assert not may_pack([*weights, torch.zeros(1)])
    monkeypatch.setattr(matrix_product, "POINTWISE", "_of_another_release")
    assert not may_pack(weights)
