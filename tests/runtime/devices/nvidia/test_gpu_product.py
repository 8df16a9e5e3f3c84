"""What GPUs are called."""

from __future__ import annotations

import pytest

from pilotlight_core.model.devices import PRICED_GPUS, UNKNOWN_PRICE
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.units import parse_gpu
from pilotlight_runtime.devices.nvidia.gpu_product import product_of

GIB = 2**30


@pytest.mark.parametrize(
    ("name", "gib", "kind", "price"),
    [
        ("NVIDIA H100 80GB HBM3", 80, "H100", "h100"),
        ("NVIDIA H100 PCIe", 80, "H100", "h100"),
        ("NVIDIA H100 NVL", 94, "H100", "h100"),
        ("NVIDIA H200", 140, "H200", "h200"),
        ("NVIDIA B200", 180, "B200", "b200"),
        ("A100-SXM4-40GB", 40, "A100-40GB", "a100"),
        ("NVIDIA A100-SXM4-80GB", 80, "A100-80GB", "a100"),
        ("NVIDIA A100 80GB PCIe", 80, "A100-80GB", "a100"),
        ("NVIDIA A100-PCIE-40GB", 40, "A100-40GB", "a100"),
        ("NVIDIA A10", 24, "A10", "a10"),
        ("NVIDIA A10G", 24, "A10G", "a10"),
        ("NVIDIA A30", 24, "A30", "a30"),
        ("NVIDIA L4", 24, "L4", "l4"),
        ("NVIDIA L40S", 48, "L40S", "l40s"),
        ("Tesla T4", 16, "T4", "t4"),
    ],
)
def test_products_with_a_price_of_their_own(name: str, gib: int, kind: str, price: str) -> None:
    """Their names vary by board, and by driver."""
    product = product_of(name, gib * GIB)

    assert (product.type, product.price) == (kind, price)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("NVIDIA L40", "L40"),
        ("NVIDIA GH200 480GB", "GH200-480GB"),
        ("Tesla V100-SXM2-16GB", "V100-SXM2-16GB"),
        ("GRID A100-10C", "A100-10C"),
        ("", "GPU"),
    ],
)
def test_others_can_be_asked_for_by_their_name(name: str, kind: str) -> None:
    """They cost what the operator sets for "gpu"; a virtual part of a known product is not billed as that."""
    product = product_of(name, 10 * GIB)

    assert (product.type, product.price) == (kind, UNKNOWN_PRICE)
    assert parse_gpu(product.type).type == kind


def test_every_known_product_is_in_the_price_book() -> None:
    """An agent's price ids are the ledger's."""
    book = load_prices()

    assert all(book.knows(product_of(name, 0).price) for name in PRICED_GPUS)
