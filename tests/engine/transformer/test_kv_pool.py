"""Keys and values in blocks."""

from __future__ import annotations

import torch

from pilotlight_engine.transformer.kv_pool import KvPool


def test_what_is_stored_is_read_in_any_order() -> None:
    """Each layer has its own."""
    pool = KvPool(layers=2, tokens=8, kv_heads=2, head_size=3, dtype=torch.float32, device=torch.device("cpu"))
    keys, values = torch.randn(3, 2, 3), torch.randn(3, 2, 3)
    pool.store(1, torch.tensor([5, 0, 2]), torch.cat((keys, values), dim=1))
    read_keys, read_values = pool.read(1, torch.tensor([2, 5]))

    assert torch.equal(read_keys, keys[[2, 0]].transpose(0, 1))
    assert torch.equal(read_values, values[[2, 0]].transpose(0, 1))
    assert not pool.keys[0].any()
