"""What turns queries and keys by their positions, from a table: the model's own numbers, computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

LEAST, MOST = 512, 16_384
"""Positions of a table. It grows as sequences do; beyond the most, numbers are computed anew at each step."""


class RotaryTable:
    """Of a model's `rotary_emb`, whose kinds of positions that depend on the longest sequence have no table."""

    def __init__(self, rotary: Any) -> None:
        self._rotary: Callable[..., tuple[torch.Tensor, torch.Tensor]] = rotary
        kind = str(rotary.rope_type)
        self._most = 0 if "dynamic" in kind or kind == "longrope" else MOST
        self._length = 0
        self._cos = self._sin = torch.empty(0)

    def at(self, positions: torch.Tensor, longest: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines of some positions, all below `longest`: `[positions, 1, size]`. The sines of the first half
        have the other sign: turning by half needs no negation then.
        """
        if longest > self._most:
            return self._computed(positions)
        if longest > self._length:
            self._length = min(self._most, max(LEAST, 2 * longest))
            self._cos, self._sin = self._computed(torch.arange(self._length))
        return self._cos.index_select(0, positions), self._sin.index_select(0, positions)

    def _computed(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        cos, sin = self._rotary(torch.empty(0), position_ids=positions[None])
        half = sin.shape[-1] // 2
        return cos[0][:, None], torch.cat((-sin[0, :, :half], sin[0, :, half:]), dim=-1)[:, None]
