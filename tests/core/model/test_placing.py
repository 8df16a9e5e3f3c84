"""Where a function's containers should be: what is refused."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.placing import MAX_POINTS, Measured, Model, Over, Placing, Spread, check_placing

POINT = Measured(gpu="H100-80GB", batch=8, throughput=100.0, p95_ms=20.0)


def refused(placing: Placing, *, gives_vram: bool = False, takes_gpu: bool = True) -> str:
    """The field that is wrong; "" if none is."""
    try:
        check_placing(placing, function="rank", gives_vram=gives_vram, takes_gpu=takes_gpu)
    except BadInput as error:
        return str(error.more["field"]) if error.detail.startswith("rank: ") else error.detail
    return ""


@pytest.mark.parametrize(
    "placing",
    [
        Placing(),
        Placing(spread=Spread(over=Over.ZONE, most=3), avoid=("shop.train",), regions=("eu",), zones=("eu-a", "eu-b")),
        Placing(model=Model(parameters=8e9, layers=32, kv_heads=8, head_size=128), measured=(POINT,)),
        Placing(slice="H100-80GB/3g", weights="llama-3 8B"),
    ],
)
def test_what_makes_sense_is_accepted(placing: Placing) -> None:
    """All of it is optional."""
    assert refused(placing) == ""


@pytest.mark.parametrize(
    ("placing", "field"),
    [
        (Placing(spread=Spread(over=Over.NODE, most=0)), "spread"),
        (Placing(regions=("eu", "eu")), "region"),
        (Placing(zones=("eu",) * 33), "zone"),
        (Placing(avoid=("not-a-function",)), "avoid"),
        (Placing(weights="a\nb"), "weights"),
        (Placing(slice="x" * 128), "slice"),
        (Placing(model=Model(parameters=float("inf"))), "model"),
        (Placing(model=Model(parameters=1e9, precision="fp2")), "model"),
        (Placing(model=Model(parameters=1e9, layers=2)), "model"),
        (Placing(measured=(POINT,) * (MAX_POINTS + 1)), "measured"),
        (Placing(measured=(Measured(gpu="H100", batch=0, throughput=1.0, p95_ms=1.0),)), "measured"),
        (Placing(measured=(Measured(gpu="H100", batch=1, throughput=1e-9, p95_ms=1.0),)), "measured"),
    ],
)
def test_what_contradicts_itself_or_is_beyond_the_bounds_is_refused(placing: Placing, field: str) -> None:
    """And the field is named."""
    assert refused(placing) == field


def test_a_model_needs_a_gpu_and_no_vram() -> None:
    """Both model= and vram= would define the memory."""
    placing = Placing(model=Model(parameters=1e9))

    assert refused(placing, gives_vram=True) == "model"
    assert refused(placing, takes_gpu=False) == "model"
    assert refused(placing) == ""
