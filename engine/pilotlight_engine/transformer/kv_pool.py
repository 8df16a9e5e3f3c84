"""Keys and values of all sequences, in blocks: for each layer one tensor of as many rows as tokens are stored."""

from __future__ import annotations

import torch


class KvPool:
    """Row `block * page + offset` holds the token at that offset of the block: its keys by head, then its values."""

    def __init__(
        self, *, layers: int, tokens: int, kv_heads: int, head_size: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.kv_heads = kv_heads
        shape = (tokens, 2 * kv_heads, head_size)
        # Zeros, since what is masked is still multiplied: by 0, and a number that is none times 0 is none.
        self._both = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(layers)]
        self.keys = [both[:, :kv_heads] for both in self._both]
        self.values = [both[:, kv_heads:] for both in self._both]

    def store(self, layer: int, slots: torch.Tensor, keys_values: torch.Tensor) -> None:
        """Keep what a layer computed: `[tokens, 2 * kv_heads, size]`, keys first, to the rows `slots`."""
        self._both[layer].index_copy_(0, slots, keys_values)

    def read(self, layer: int, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of some rows, each `[kv_heads, tokens, size]`."""
        both = self._both[layer].index_select(0, slots).transpose(0, 1)
        return both[: self.kv_heads], both[self.kv_heads :]
