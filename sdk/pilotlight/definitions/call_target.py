"""The target of a call and its settings, for Function, its verbs and the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pilotlight.definitions.local_calls import LocalInstance
from pilotlight.definitions.signature import Callee
from pilotlight_core.model.ids import Ref
from pilotlight_core.model.spec import FunctionSpec, Mode


class CallSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of `Function.options`."""

    id: str | None = None
    deadline: float | None = None
    on_stage: Callable[[str, float, dict[str, Any]], object] | None = None
    idempotency_key: str | None = None
    run_at: float | None = None


class CallTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A function or method. `spec` and `callee` are None if found by name, `instance` unless it is a method."""

    ref: Ref
    method: str = ""
    spec: FunctionSpec | None = None
    callee: Callee | None = None
    instance: LocalInstance | None = None
    settings: CallSettings = CallSettings()

    @property
    def label(self) -> str:
        """Its name in messages: `app.function` or `app.function.method`."""
        return f"{self.ref}.{self.method}" if self.method else str(self.ref)

    @property
    def batch_size(self) -> int | None:
        """The largest batch, in items; None if not batched or not known here."""
        batched = self.callee.batched if self.callee else None
        return batched.max_batch_size if batched else None

    @property
    def is_generator(self) -> bool | None:
        """Whether it yields; None if not known here."""
        return None if self.callee is None else self.callee.mode is Mode.GENERATOR

    @property
    def is_idempotent(self) -> bool:
        """Whether it is known to be safe to run twice."""
        return self.spec is not None and self.spec.idempotent
