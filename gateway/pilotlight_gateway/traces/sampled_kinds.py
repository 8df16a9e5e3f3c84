"""What sampled calls have in common, made once for all of a container that are alike. Each kept call passes here."""

from __future__ import annotations

from pilotlight_core.model.messages.call_messages import Grant
from pilotlight_core.model.tracing.sampled_call import SampledKind, SampledRecord, SampledTimes
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall

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
        self._known: dict[tuple[str, str, str, str, str, int, bool], SampledKind] = {}

    def __len__(self) -> int:
        return len(self._known)

    def sampled(
        self,
        call: PreparedCall,
        result: CallResult,
        stages: dict[str, float],
        total_ms: float,
        slow_ms: float,
        ended_ns: int,
    ) -> SampledRecord:
        """A call that `is_ordinary`, as it is kept."""
        grant, spent = result.grant, result.spent
        assert grant is not None  # noqa: S101 - or it is not ordinary
        size = 0 if spent is None else spent.batch_size
        key = call.version.id, grant.container, call.tenant, call.method.name, call.priority, size, call.stream
        kind = self._known.get(key)
        if kind is None or kind.slow_ms != slow_ms:
            kind = self._learn(key, call, grant, slow_ms)
        times = SampledTimes(
            call.call_id,
            ended_ns - int(total_ms * 1e6),
            total_ms,
            stages["gateway"],
            stages["queue"],
            stages["start"],
            stages["transport"],
            stages["batch_wait"],
            stages["execute"],
            grant.ahead,
            result.mates,
        )
        return SampledRecord(kind, times)

    def _learn(
        self, key: tuple[str, str, str, str, str, int, bool], call: PreparedCall, grant: Grant, slow_ms: float
    ) -> SampledKind:
        if len(self._known) >= MOST_KINDS:
            self._known.clear()
        version, container, tenant, method, priority, size, stream = key
        made = SampledKind(
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
        self._known[key] = made
        return made
