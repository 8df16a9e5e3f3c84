"""Adapters on a model's linear layers, several in one step: each token goes through the adapter of its sequence."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Any

import torch
from transformers.pytorch_utils import Conv1D

from pilotlight_engine.transformer.lora_files import LoraWeights


@dataclass(frozen=True, kw_only=True, slots=True)
class LoraSegment:
    """Tokens of a step that use one adapter."""

    weights: LoraWeights
    tokens: torch.Tensor
    """Their numbers among the step's."""


class LoraLayers:
    """Hooks on the layers that some adapter changes. Without segments they do nothing."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._modules = {path: module for path, module in model.named_modules() if _is_linear(path, module)}
        self._hooked: set[str] = set()
        self._segments: tuple[LoraSegment, ...] = ()

    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """Inputs and outputs of each layer that an adapter may change, by path."""
        return {path: _sizes(module) for path, module in self._modules.items()}

    @property
    def in_use(self) -> bool:
        """Whether the next forward pass has any adapter."""
        return bool(self._segments)

    def use(self, segments: Seq[LoraSegment]) -> None:
        """The next forward pass has these adapters."""
        self._segments = tuple(segments)
        for segment in segments:
            for path in segment.weights.down.keys() - self._hooked:
                self._hooked.add(path)
                self._modules[path].register_forward_hook(self._hook(path))

    def _hook(self, path: str) -> Any:
        def add(_: torch.nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
            for segment in self._segments:
                down = segment.weights.down.get(path)
                if down is not None:
                    rows = inputs[0][0].index_select(0, segment.tokens)
                    output[0].index_add_(0, segment.tokens, rows @ down.T @ segment.weights.up[path].T)

        return add


def _is_linear(path: str, module: torch.nn.Module) -> bool:
    """The last layer sees only some tokens of a step, and may be the embeddings: no adapter changes it."""
    return isinstance(module, torch.nn.Linear | Conv1D) and path != "lm_head"


def _sizes(module: torch.nn.Module) -> tuple[int, int]:
    if isinstance(module, torch.nn.Linear):
        return module.in_features, module.out_features
    assert isinstance(module, Conv1D)  # noqa: S101 - the other of the two kinds
    return int(module.weight.shape[0]), int(module.weight.shape[1])
