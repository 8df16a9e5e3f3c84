"""One call of a class with hooks: which function runs when, and what all of them come to.

    preprocess ──▶ the method ──▶ postprocess        each is an `Origin` of its own, and one of them lives at a time

All run under the call's id. The numbers of their grants rise from one to the next, so agents, homes and the ledger see
one call that ran several times. A stage that is tried again is tried alone: what was before it is done. Plain: an
instant is an argument, and nothing is sent from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from pilotlight_core.model.errors import BadInput, BadOutput, Cancelled, PilotlightError, Unavailable
from pilotlight_core.model.pipelines.pipeline import HookKind, Pipeline
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.calls.attempts import Attempts
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall

NIL = b"\xc0"
METHOD = ""
"""The stage of the class's own method."""
NO_DICT = "The method takes several arguments, and what its hook returned is no dict of them."


class CallPipeline:
    """The stages of one call, one after the other."""

    def __init__(self, call: PreparedCall, pipeline: Pipeline, hooks: Mapping[HookKind, VersionRecord]) -> None:
        """`hooks`: the versions of the companions, for each hook of the `pipeline`."""
        self.call = call
        """As its caller made it: the method's, with what the first hook gets as its input."""
        self._pipeline = pipeline
        self._hooks = hooks
        first, last = HookKind.PREPROCESS in hooks, HookKind.POSTPROCESS in hooks
        self._stages: list[str] = [
            *([HookKind.PREPROCESS.value] if first else []),
            METHOD,
            *([HookKind.POSTPROCESS.value] if last else []),
        ]
        self._at = 0
        self._results: list[CallResult] = []
        """Of the stages before the one that runs."""
        self.attempts: list[Attempts] = []
        """Theirs."""

    @property
    def stage(self) -> str:
        """The hook that runs now, "preprocess" or "postprocess"; "": the method."""
        return self._stages[self._at]

    @property
    def is_cold(self) -> bool:
        """Whether a container was started for a stage before the one that runs."""
        return any(each.cold_start is not None for each in self._results)

    def begin(self) -> PreparedCall:
        """The call of the first stage."""
        return self._call_of(self.call.input)

    def go_on(self, attempts: Attempts, result: CallResult) -> PreparedCall | None:
        """The stage that ran has ended well. Returns the call of the next one; None: that was the last.

        Raises:
            BadOutput: the method cannot get what its hook has returned.
        """
        self.attempts.append(attempts)
        if self._at + 1 == len(self._stages):
            self._results.append(result)
            return None
        # Nobody needs the value once the next stage has it: what is held of a call has room for one.
        self._results.append(msgspec.structs.replace(result, output=b""))
        name = self._argument()
        output = result.output or NIL
        if not name and not is_map(output):
            raise BadOutput(NO_DICT)
        self._at += 1
        return self._call_of(msgspec.msgpack.encode({name: msgspec.Raw(output)}) if name else output)

    def _argument(self) -> str:
        """What the next stage calls the value; "": the value has its arguments by name."""
        if self._stages[self._at + 1] == METHOD:
            return self._pipeline.takes[self.call.method.name]
        last = self._pipeline.postprocess
        return last.takes if last is not None else ""

    def _call_of(self, data: bytes) -> PreparedCall:
        """The call of the stage that is to run."""
        call, stage = self.call, self.stage
        version = call.version if stage == METHOD else self._hooks[HookKind(stage)]
        spec = version.spec
        if (spec.retries, spec.idempotent) != (call.version.spec.retries, call.version.spec.idempotent):
            # Of a job the record decides what a failure leads to.
            spec = msgspec.structs.replace(
                spec, retries=call.version.spec.retries, idempotent=call.version.spec.idempotent
            )
            version = msgspec.structs.replace(version, spec=spec)
        return PreparedCall(
            call_id=call.call_id,
            client_id=call.client_id,
            tenant=call.tenant,
            version=version,
            method=call.method if stage == METHOD else spec.method(call.method.name),
            input=data,
            priority=call.priority,
            deadline_at=call.deadline_at,
            arrived_at=call.arrived_at,
            stream=call.stream,
            scheduling=call.scheduling,
            traceparent=call.traceparent,
            link=call.link,
            key=call.key,
            parent=call.parent,
            principal=call.principal,
            tags=call.tags,
            gateway_ms=0.0 if self._at else call.gateway_ms,
            start_hook=None if self._at else call.start_hook,
            lost_ms=max(0.0, call.lost_ms - self._execute_ms()),
            side=call.side,
            split=-1 if self._at else call.split,  # what has begun on a side ends there
        )

    def _execute_ms(self) -> float:
        """How long the stages before this one have run."""
        return sum([each.stages.get("execute", 0.0) for each in self._results])

    def named(self, stage: str) -> str:
        """A stage of the call, such as "queued", as its caller is told of it."""
        return f"{self.stage}: {stage}" if self.stage else stage

    def explained(self, error: PilotlightError) -> PilotlightError:
        """The error of the stage that runs, which says that it is of a hook."""
        stage = self.stage
        if self._at and isinstance(error, BadInput):
            whose = "the @preprocess() hook" if stage == METHOD else "the method"
            course = error.course
            error = BadOutput(f"What {whose} returned does not fit: {error.detail}", **_without_field(error))
            error.course = course
        if stage == METHOD or isinstance(error, Cancelled):
            return error
        error.more["stage"] = stage
        hook = self._pipeline.hooks[HookKind(stage)]
        error.detail = f"{error.detail} (in {hook.attribute}, the @{stage}() hook)"
        return error

    def result(self) -> CallResult:
        """The result of the whole call, once `go_on` has no next stage."""
        results = dict(zip(self._stages, self._results, strict=True))
        own = results[METHOD]
        spent = tuple(one for each in self._results for one in (*each.spent_before, each.spent) if one is not None)
        if own.spent is not None:
            spent = tuple(one for one in spent if one is not own.spent)
        units: dict[str, int] = {}
        for each in self._results:
            for unit, count in (each.units or {}).items():
                units[unit] = units.get(unit, 0) + count
        cold_start: dict[str, float] = {}
        for stage, each in results.items():
            for step, ms in (each.cold_start or {}).items():
                cold_start[f"{stage}: {step}" if stage else step] = ms
        return CallResult(
            output=self._results[-1].output,
            spent=own.spent,
            spent_before=spent,
            stages=self._stage_times(results),
            cold_start=cold_start or None,
            attempts=1 + sum(each.attempts - 1 for each in self._results),
            container=own.container,
            nth=own.nth,
            batch=own.batch,
            units=units or None,
            sold=own.sold,
            grant=own.grant,
            mates=own.mates,
            trail=tuple(one for each in self._results for one in each.trail),
        )

    def _stage_times(self, results: dict[str, CallResult]) -> dict[str, float]:
        """Milliseconds by stage, in the order in which they come; a hook is one, with its wait."""
        gateway_ms = self._results[0].stages.get("gateway", 0.0)
        times = {"gateway": gateway_ms}
        for stage, each in results.items():
            if stage:
                times[stage] = sum(each.stages.values()) - each.stages.get("gateway", 0.0)
            else:
                times |= each.stages | {"gateway": gateway_ms}
        return times


def pipeline_of_call(call: PreparedCall) -> CallPipeline | None:
    """The stages of a call; None: its function has no hooks.

    Raises:
        Unavailable: the versions of its companions are not known here.
    """
    pipeline = call.version.spec.pipeline
    if pipeline is UNSET:
        return None
    if call.hooks is None or {*call.hooks} != {*pipeline.hooks}:
        raise Unavailable(f"The hooks of {call.version.ref} are not known here yet.", retry_after=1.0)
    return CallPipeline(call, pipeline, call.hooks)


def is_map(data: bytes) -> bool:
    """Whether msgpack is that of a map."""
    first = data[0]
    return 0x80 <= first <= 0x8F or first in (0xDE, 0xDF)


def _without_field(error: PilotlightError) -> dict[str, Any]:
    return {name: value for name, value in error.more.items() if name != "field"}
