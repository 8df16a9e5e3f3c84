"""People's word about the size of a function, which goes before its specification."""

from __future__ import annotations

import math

import msgspec
from msgspec import UNSET, UnsetType

from pilotlight_core.model.spec import FunctionSpec

BOUNDS = ("min_containers", "max_containers", "buffer_containers", "scaledown_window", "zero_window", "forecast")
"""Fields of a specification that people may say otherwise, of the same names in a record."""


class BoundOverride(msgspec.Struct, frozen=True, kw_only=True):
    """Another value of one field."""

    value: float
    """Containers, or seconds; of `forecast` 1 or 0."""
    at: float
    """When it was said, in unix seconds."""
    by: str = ""
    """The id of the API key that said it."""
    ends_at: float = 0.0
    """The unix second at which the specification's holds again; 0: it stays."""

    def holds(self, at: float) -> bool:
        """Whether it goes before the specification at the unix second `at`."""
        return not self.ends_at or at < self.ends_at

    @property
    def end(self) -> float:
        """`ends_at`; infinity: it stays."""
        return self.ends_at or math.inf


class ScaleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The overrides of one function. Key: `scale.{tenant}.{app}.{function}`; independent of deploys.

    An override ends by itself: whoever reads the record asks whether it `holds`.
    """

    tenant: str
    app: str
    function: str
    min_containers: BoundOverride | None = None
    max_containers: BoundOverride | None = None
    buffer_containers: BoundOverride | None = None
    scaledown_window: BoundOverride | None = None
    zero_window: BoundOverride | None = None
    forecast: BoundOverride | None = None

    def override(self, field: str, at: float) -> BoundOverride | None:
        """The override of one of `BOUNDS` that holds at the unix second `at`."""
        found: BoundOverride | None = getattr(self, field)
        return found if found is not None and found.holds(at) else None

    def holding(self, at: float) -> dict[str, BoundOverride]:
        """The overrides that hold at the unix second `at`, by field."""
        return {field: found for field in BOUNDS if (found := self.override(field, at)) is not None}


def overridden(spec: FunctionSpec, record: ScaleRecord | None, at: float) -> FunctionSpec:
    """The specification with people's word of the unix second `at` in the place of its own."""
    holding = {} if record is None else record.holding(at)
    return msgspec.structs.replace(
        spec, **{field: type(deployed(spec, field))(override.value) for field, override in holding.items()}
    )


def deployed(spec: FunctionSpec, field: str) -> float | bool:
    """What a specification says of one of `BOUNDS`."""
    said: float | bool | UnsetType = getattr(spec, field)
    if said is UNSET:
        return spec.scaledown_window if field == "zero_window" else True
    return said
