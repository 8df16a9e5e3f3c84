"""The Markers that decorators put on functions and classes."""

from __future__ import annotations

import msgspec

from pilotlight.definitions.artifact_options import Artifact
from pilotlight.definitions.schedules import Cron, Period

ATTRIBUTE = "__pilotlight__"
"""The attribute for Markers."""


class BatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `@batched`, with `cost` as it was written."""

    max_batch_size: int
    wait_ms: float
    cost: str | None
    max_batch_cost: float | None


class HookOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `@preprocess()` and `@postprocess()`: of the containers that such a hook runs in."""

    cpu: float | None = None
    memory: int | None = None
    """Bytes."""
    max_containers: int | None = None
    max_inputs: int | None = None


class Markers(msgspec.Struct, frozen=True, kw_only=True):
    enter: bool = False
    enter_for: str = ""
    """The hook in whose containers `@enter()` runs it; "": it is in those of the methods."""
    preprocess: HookOptions | None = None
    postprocess: HookOptions | None = None
    exit: bool = False
    park: bool = False
    unpark: bool = False
    drain: bool = False
    method: bool = False
    check: bool = False
    batched: BatchOptions | None = None
    max_inputs: int | None = None
    schedule: Cron | Period | None = None

    @property
    def is_callable(self) -> bool:
        """Whether calls may name it as a method."""
        return self.method or self.batched is not None


def markers_of(thing: object) -> Markers:
    """Return the Markers of a function or class; empty ones if it has none."""
    markers = getattr(thing, ATTRIBUTE, None)
    return markers if isinstance(markers, Markers) else Markers()


class Decorated:
    """The base of Function and Cls, which take no markers."""

    is_class: bool = False
    artifacts: tuple[Artifact, ...] = ()
    weights: tuple[str, ...] = ()
    source_module: str = ""
    """The module that defines it; "": that of its code, which its specification names."""
