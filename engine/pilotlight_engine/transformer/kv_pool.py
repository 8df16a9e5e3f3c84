"""Keys and values of all sequences, in blocks: for each layer two tensors of as many rows as tokens are stored."""

from __future__ import annotations

import torch


class KvPool:
    """Row `block * page + offset` holds the token at that offset of the block."""

    def __init__(
        self, *, layers: int, tokens: int, kv_heads: int, head_size: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        shape = (tokens, kv_heads, head_size)
        # Zeros, since what is masked is still multiplied: by 0, and a number that is none times 0 is none.
        self.keys = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(layers)]
        self.values = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(layers)]

    def store(self, layer: int, slots: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Keep what a layer computed: `[tokens, heads, size]`, to the rows `slots`."""
        self.keys[layer].index_copy_(0, slots, keys)
        self.values[layer].index_copy_(0, slots, values)

    def read(self, layer: int, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of some rows, `[heads, tokens, size]`."""
        keys, values = self.keys[layer].index_select(0, slots), self.values[layer].index_select(0, slots)
        return keys.transpose(0, 1), values.transpose(0, 1)
