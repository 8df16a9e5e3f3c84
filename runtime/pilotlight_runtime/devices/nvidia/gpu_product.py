"""The names of a GPU: the driver's, the users', and its id in the price book."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pilotlight_core.model.devices import PRICED_GPUS, UNKNOWN_PRICE, gpu_price

MAKER = frozenset({"NVIDIA", "TESLA", "GEFORCE", "QUADRO", "GRID"})
VGPU = re.compile(r"\d+[ABCQ]")
"""The end of a virtual GPU's name, such as "A100-10C"."""
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Product:
    """`type` is what users ask for ("H100", "A100-80GB", "RTX-4090"), `price` its id in the price book."""

    type: str
    price: str


def product_of(name: str, memory: int) -> Product:
    """The product that the driver calls `name`, with `memory` bytes.

    An A100's memory decides, since half of its names do not contain it; "A100" asks for either.
    """
    words = [word for word in re.split(r"[^A-Z0-9]+", name.upper()) if word and word not in MAKER]
    known = next((word for word in words if word in PRICED_GPUS), None)
    if known is None or VGPU.fullmatch(words[-1]):
        return Product(type="-".join(words) or "GPU", price=UNKNOWN_PRICE)
    if known == "A100":
        known = "A100-80GB" if memory > 60 * GIB or "80GB" in words else "A100-40GB"
    return Product(type=known, price=gpu_price(known))
