"""What a function requires of the place of its containers, and its declared model and measurements.

All of it is optional and part of the spec; `check_placing` checks it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import NAME, check_name

PRECISIONS = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5}
"""Bytes per parameter."""
CONTEXT_BYTES = 600 * 2**20
"""A CUDA context with PyTorch's kernels, cuBLAS and cuDNN workspaces, as nvidia-smi shows it for an idle process."""
MAX_POINTS = 512
"""Measured points of one function: a dozen GPU types, their slices, a few batch sizes."""
MAX_NAMES = 32
MAX_WEIGHTS = 200
MAX_COUNT = 2.0**53
MIN_THROUGHPUT = 1e-6
"""Items per second: one in eleven days. Keeps quotients finite."""


class Over(StrEnum):
    NODE = "node"
    ZONE = "zone"


class Purchase(StrEnum):
    ANY = "any"
    ON_DEMAND = "on-demand"
    SPOT = "spot"


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The domain with the fewest containers of the function goes first; `most` is a hard limit per domain."""

    over: Over
    """"node" or "zone"."""
    most: int | None = None
    """Containers of the function in one of them."""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of a model from which its device memory is computed. Without `layers` there is no KV cache."""

    parameters: float
    """How many weights: 8e9."""
    precision: str = "bf16"
    """Of a weight: fp32, bf16, fp16, fp8, int8 or int4."""
    layers: int = 0
    kv_heads: int = 0
    """Heads whose keys and values are cached."""
    head_size: int = 0
    hidden: int = 0
    """The width of a layer's output, from which activations are estimated."""
    kv_precision: str = "bf16"
    """Of a cached value."""
    context_tokens: int = 0
    """The longest context of one call."""
    batch_tokens: int = 0
    """Tokens in one forward pass; 0: one per call."""
    activations: int | None = None
    """Measured bytes at the largest batch, if known."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One measured point of a throughput curve: items per second at a batch size, and p95 of one batch in ms.

    `gpu` is the device as agents report it ("H100-80GB"); `slice` is "whole", "whole:4" or a MIG profile ("3g").
    """

    gpu: str
    batch: int
    """Items in one batch."""
    throughput: float
    """Items per second."""
    p95_ms: float
    """Of one batch."""
    slice: str = "whole"


class Placing(msgspec.Struct, frozen=True, kw_only=True):
    by_cost: bool = False
    """The GPU list has no order; cost per throughput decides among its types."""
    spread: Spread | None = None
    avoid: tuple[str, ...] = ()
    """Functions (`app.function`) whose nodes are excluded."""
    weights: str = ""
    """The name of weights that functions share, preferably resident on the node; "": none."""
    purchase: Purchase = Purchase.ANY
    regions: tuple[str, ...] = ()
    """Empty: any."""
    zones: tuple[str, ...] = ()
    neighbours: bool = False
    """Whether other tenants may share its GPU."""
    media: bool = False
    """Whether it needs the video engines, which only one instance of a MIG device can have."""
    model: Model | None = None
    """Replaces vram=: the memory is computed from it."""
    measured: tuple[Measured, ...] = ()
    slice: str = ""
    """The only kind of slice that it may run on, "H100-80GB/3g", as in a trial (`check_slice`); "": any."""


def check_placing(placing: Placing, *, function: str, gives_vram: bool, takes_gpu: bool) -> None:
    """Refuse a `Placing` that contradicts itself or the spec of `function`, or exceeds the bounds.

    `gives_vram`: the spec has vram=. `takes_gpu`: one of its choices is a GPU.

    Raises:
        BadInput: naming the field.
    """
    for field, expected in _wrong(placing, gives_vram=gives_vram, takes_gpu=takes_gpu):
        raise BadInput(f"{function}: {field}= {expected}.", field=field)


def _wrong(placing: Placing, *, gives_vram: bool, takes_gpu: bool) -> Iterator[tuple[str, str]]:
    spread = placing.spread
    if spread is not None and spread.most is not None and not 1 <= spread.most <= 10_000:
        yield "spread", f"allows {spread.most} containers in one {spread.over.value}: expected 1 to 10000"
    for field, option in (("regions", "region"), ("zones", "zone")):
        names: tuple[str, ...] = getattr(placing, field)
        if len(names) > MAX_NAMES or len(set(names)) != len(names):
            yield option, f"names {len(names)}: expected at most {MAX_NAMES}, each once"
        for name in names:
            check_name(name, option)
    if len(placing.avoid) > MAX_NAMES:
        yield "avoid", f"names {len(placing.avoid)} functions: expected at most {MAX_NAMES}"
    for function in placing.avoid:
        app, _, name = function.partition(".")
        if not (NAME.fullmatch(app) and NAME.fullmatch(name)):
            yield "avoid", f"names {function!r}: expected functions of yours, as app.function"
    if len(placing.weights) > MAX_WEIGHTS or not placing.weights.isprintable():
        yield "weights", f"expected a name of at most {MAX_WEIGHTS} printable characters"
    if len(placing.slice) > 127 or not placing.slice.isprintable():
        yield "slice", 'expected a device and a slice of it, such as "H100-80GB/3g"'
    if placing.model is not None:
        yield from _wrong_model(placing.model, gives_vram=gives_vram, takes_gpu=takes_gpu)
    yield from _wrong_points(placing.measured)


def _wrong_model(model: Model, *, gives_vram: bool, takes_gpu: bool) -> Iterator[tuple[str, str]]:
    if gives_vram:
        yield "model", "and vram= both say how much memory is needed: give one of them"
    if not takes_gpu:
        yield "model", 'is memory of a GPU: say which with gpu=, or gpu="any"'
    if not (math.isfinite(model.parameters) and 0 < model.parameters <= 1e15):
        yield "model", f"parameters={model.parameters!r} is out of range: expected more than 0 and at most 1e15"
    for name in ("precision", "kv_precision"):
        if getattr(model, name) not in PRECISIONS:
            yield "model", f"{name}={getattr(model, name)!r} is not known: expected one of {', '.join(PRECISIONS)}"
    for name in ("layers", "kv_heads", "head_size", "hidden", "context_tokens", "batch_tokens"):
        if not 0 <= getattr(model, name) <= 10**8:
            yield "model", f"{name}={getattr(model, name)!r} is out of range: expected 0 to 100000000"
    if model.layers and not (model.kv_heads and model.head_size):
        yield "model", "has layers=, so its KV cache needs kv_heads= and head_size="
    if model.activations is not None and not 0 <= model.activations <= 2**42:
        yield "model", f"activations={model.activations!r} is out of range: expected 0 to 4 TiB, in bytes"


def _wrong_points(points: tuple[Measured, ...]) -> Iterator[tuple[str, str]]:
    if len(points) > MAX_POINTS:
        yield "measured", f"has {len(points)} points: expected at most {MAX_POINTS}"
    for point in points:
        numbers = (point.throughput, point.p95_ms)
        if point.batch < 1 or not all(math.isfinite(number) and 0 < number <= MAX_COUNT for number in numbers):
            yield "measured", f"has {point}: expected batch=, throughput= and p95_ms= above 0"
        elif point.throughput < MIN_THROUGHPUT:
            yield "measured", f"has {point}: expected throughput= of at least {MIN_THROUGHPUT:g}"
        if not NAME.fullmatch(point.gpu) or not 0 < len(point.slice) <= 63 or not point.slice.isprintable():
            yield "measured", f'has {point}: expected gpu="H100-80GB" and slice="whole", "whole:4" or "3g"'
