"""The target of a call and its settings, for Function, its verbs and the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pilotlight.definitions.local_calls import LocalInstance
from pilotlight.definitions.signature import Callee, answer_converter
from pilotlight_core.model.ids import Ref
from pilotlight_core.model.spec import FunctionSpec, Mode


class CallSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of `Function.options`."""

    id: str | None = None
    deadline: float | None = None
    on_stage: Callable[[str, float, dict[str, Any]], object] | None = None
    idempotency_key: str | None = None
    run_at: float | None = None
    sticky: str | None = None


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

    def as_hinted(self, answer: Any) -> Any:
        """Return an answer off the wire, or a chunk, as the return hint says; as it came where that does not fit."""
        convert = None if self.callee is None else answer_converter(self.callee)
        if convert is None:
            return answer
        try:
            return convert(answer)
        except Exception:  # noqa: BLE001 - a tenant's own type may refuse in any way, and the answer is there
            return answer

    def as_stored(self, answer: Any) -> Any:
        """Return the stored answer of a job as the hint says; that of a generator is the list of its chunks."""
        if self.is_generator and isinstance(answer, list):
            return [self.as_hinted(chunk) for chunk in answer]
        return self.as_hinted(answer)

    @property
    def is_idempotent(self) -> bool:
        """Whether it is known to be safe to run twice."""
        return self.spec is not None and self.spec.idempotent
