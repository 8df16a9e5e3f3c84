"""Products with one matrix of weights, which small models have a second time, in the order in which oneDNN reads it.

A step of a few dozen tokens waits for weights from memory more than it computes; read in order they come sooner. The
operations are those that torch's own compiler calls; where they are not there, a product is a plain one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear

REORDER, POINTWISE = "_reorder_linear_weight", "_linear_pointwise"
MOST_PACKED = 64 << 20
"""Bytes of all matrices of a model that has them twice. A memory plan has room for it, among its workspace."""
LIKELY_ROWS = 32
"""Of what is multiplied, for which the order is chosen; it serves any number of them."""
FEW_ROWS = 8
"""With fewer the plain product is quicker: it begins sooner."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MatrixProduct:
    """`[rows, inputs]` times the weights, which are `[outputs, inputs]`, and a bias."""

    weight: torch.Tensor
    bias: torch.Tensor | None = None
    packed: torch.Tensor | None = None

    def of(self, rows: torch.Tensor) -> torch.Tensor:
        """The product."""
        if self.packed is None or rows.shape[0] < FEW_ROWS:
            return linear(rows, self.weight, self.bias)
        found: torch.Tensor = _pointwise().default(rows, self.packed, self.bias, "none", [], "")
        return found

    def added_to(self, hidden: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """The product, added to something of its shape."""
        if self.packed is None or rows.shape[0] < FEW_ROWS:
            found = torch.addmm(hidden, rows, self.weight.T)
            return found if self.bias is None else found + self.bias
        added: torch.Tensor = _pointwise().binary(rows, hidden, self.packed, self.bias, "add")
        return added


def may_pack(weights: Iterable[torch.Tensor]) -> bool:
    """Whether a model's matrices are few enough to have them twice, and there is something to read them."""
    return (
        sum(weight.nbytes for weight in weights) <= MOST_PACKED
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, REORDER)
        and hasattr(torch.ops.mkldnn, POINTWISE)
    )


def product(weight: torch.Tensor, bias: torch.Tensor | None = None, *, is_packed: bool) -> MatrixProduct:
    """The product with some weights of float32 on a CPU; they are packed, if `may_pack` said so of all."""
    packed = getattr(torch.ops.mkldnn, REORDER)(weight, LIKELY_ROWS) if is_packed else None
    return MatrixProduct(weight=weight, bias=bias, packed=packed)


def _pointwise() -> Any:
    return getattr(torch.ops.mkldnn, POINTWISE)
