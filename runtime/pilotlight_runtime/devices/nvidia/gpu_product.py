"""The names of a GPU: the driver's, the users', and its id in the price book."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pilotlight_core.model.devices import UNKNOWN_PRICE

KNOWN = ("A10", "A100", "A10G", "A30", "B200", "H100", "H200", "L4", "L40S", "T4")
"""The products with a price of their own."""
OTHER_PRICES = {"A10G": "a10"}
"""The A10 as one cloud has it built."""
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
    known = next((word for word in words if word in KNOWN), None)
    if known is None or VGPU.fullmatch(words[-1]):
        return Product(type="-".join(words) or "GPU", price=UNKNOWN_PRICE)
    if known == "A100":
        return Product(type="A100-80GB" if memory > 60 * GIB or "80GB" in words else "A100-40GB", price="a100")
    return Product(type=known, price=OTHER_PRICES.get(known, known.lower()))
