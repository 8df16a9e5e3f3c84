"""What sampled calls have in common, made once for all of a container that are alike. Each kept call passes here."""

from __future__ import annotations

from pilotlight_core.model.messages.call_messages import Grant
from pilotlight_core.model.tracing.sampled_call import SampledKind
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.traces.open_sheet import KnownKind

MOST_KINDS = 4_096


STAGES = 7
"""Of a call without hooks."""


def is_ordinary(call: PreparedCall, result: CallResult, stages: dict[str, float]) -> bool:
    """Whether of a call that ended well nothing is to be told but who made it, where, with whom and when it ran."""
    if result.cold_start is not None or result.trail or result.units or result.fallback:
        return False
    if result.grant is None or len(stages) != STAGES:
        return False
    return call.start_hook is None and not (call.hooks or call.link or call.parent)


class SampledKinds:
    """Those that were met lately."""

    def __init__(self, threshold: str) -> None:
        """`threshold`: of the sampler, as `KeptCall` has it."""
        self._threshold = threshold
        self._known: dict[tuple[str, str, str, str, str, int, bool], KnownKind] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, call: PreparedCall, result: CallResult, slow_ms: float) -> KnownKind:
        """That of a call that `is_ordinary`."""
        grant, spent = result.grant, result.spent
        assert grant is not None  # noqa: S101 - or it is not ordinary
        size = 0 if spent is None else spent.batch_size
        key = call.version.id, grant.container, call.tenant, call.method.name, call.priority, size, call.stream
        known = self._known.get(key)
        if known is None or known.slow_ms != slow_ms:
            return self._learn(key, call, grant, slow_ms)
        return known

    def _learn(
        self, key: tuple[str, str, str, str, str, int, bool], call: PreparedCall, grant: Grant, slow_ms: float
    ) -> KnownKind:
        if len(self._known) >= MOST_KINDS:
            self._known.clear()
        version, container, tenant, method, priority, size, stream = key
        kind = SampledKind(
            tenant=tenant,
            function=call.function,
            ref=call.version.ref,
            version=version,
            method=method,
            priority=str(priority),
            threshold=self._threshold,
            slow_ms=slow_ms,
            container=container,
            node=grant.node,
            batch_size=size,
            stream=stream,
        )
        made = self._known[key] = KnownKind(kind)
        return made
