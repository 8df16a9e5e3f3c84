"""The stages of a call of a class with hooks, one after the other; nothing runs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput, BadOutput, Cancelled, FunctionRaised, Unavailable
from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.pipelines.pipeline import CallHook, HookKind, Pipeline
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_core.model.rollouts.split import Side
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.calls.attempts import Attempts
from pilotlight_gateway.calls.call_pipeline import CallPipeline, pipeline_of_call
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall
from tests.builders.calls import prepared_call
from tests.builders.specs import function_spec, method, version_record

BOTH = Pipeline(
    preprocess=CallHook(attribute="read", version="ver_pre"),
    postprocess=CallHook(attribute="write", takes="answer", version="ver_post"),
    takes={"add": "numbers"},
)
CPU, GPU = Spent(ns=1_000, ppm=10_000, price="cpu"), Spent(ns=5_000, ppm=1_000_000, price="h100")


def companion(kind: HookKind, **options: Any) -> VersionRecord:
    name, attribute = ("Words~pre", "read") if kind is HookKind.PREPROCESS else ("Words~post", "write")
    spec = function_spec(name, method("add", attribute), is_class=True, hook=kind, **options)
    return version_record(spec, id="ver_pre" if kind is HookKind.PREPROCESS else "ver_post")


def call_of(pipeline: Pipeline = BOTH, **options: Any) -> PreparedCall:
    """A call of `Words.add`, with the versions of its hooks."""
    spec = function_spec("Words", method("add", "add"), is_class=True, pipeline=pipeline, **options)
    hooks = {kind: companion(kind) for kind in pipeline.hooks}
    version = version_record(spec)
    return prepared_call(version=version, method=version.spec.methods[0], input=b"asked", hooks=hooks, gateway_ms=2.0)


def begun(pipeline: Pipeline = BOTH, **options: Any) -> tuple[CallPipeline, PreparedCall]:
    found = pipeline_of_call(call_of(pipeline, **options))
    assert found is not None
    return found, found.begin()


def result(value: Any, spent: Spent | None = None, **more: Any) -> CallResult:
    return CallResult(output=msgspec.msgpack.encode(value), spent=spent, **more)


def go_on(pipeline: CallPipeline, done: CallResult) -> PreparedCall | None:
    return pipeline.go_on(Attempts(0.0), done)


def test_a_call_goes_through_three_functions_under_one_id() -> None:
    """Each gets what the one before returned, under the name that it has there."""
    pipeline, first = begun()
    assert (first.call_id, first.version.id, first.method.attribute, first.input) == ("a", "ver_pre", "read", b"asked")
    assert (pipeline.stage, first.function) == ("preprocess", "acme:hello.Words~pre")

    second = go_on(pipeline, result([1, 2]))
    assert second is not None
    assert (second.call_id, second.version.id, msgspec.msgpack.decode(second.input)) == (
        "a",
        "ver_1",
        {"numbers": [1, 2]},
    )
    third = go_on(pipeline, result(3))
    assert third is not None
    assert (third.version.id, msgspec.msgpack.decode(third.input)) == ("ver_post", {"answer": 3})
    assert go_on(pipeline, result("it is 3")) is None
    assert msgspec.msgpack.decode(pipeline.result().output) == "it is 3"


def test_a_call_of_a_rollout_is_on_its_side_in_every_stage() -> None:
    """Only what has not begun may be chosen for anew: the first one alone is known by what it was chosen."""
    call = call_of()
    call.side, call.split = Side("rol_1", Arm.CANARY, 0.5, ""), 7
    pipeline = pipeline_of_call(call)
    assert pipeline is not None
    first, second = pipeline.begin(), go_on(pipeline, result([1, 2]))
    assert second is not None
    assert [(one.side, one.split, one.is_tried_once) for one in (first, second)] == [
        (call.side, 7, True), (call.side, -1, True),
    ]  # fmt: skip


def test_a_method_of_several_arguments_gets_them_by_name() -> None:
    """What is no dict is the hook's fault, and the method is not begun."""
    several = Pipeline(preprocess=BOTH.preprocess, takes={"add": ""})
    pipeline, _ = begun(several)
    second = go_on(pipeline, result({"numbers": [1], "times": 2}))
    assert second is not None
    assert msgspec.msgpack.decode(second.input) == {"numbers": [1], "times": 2}
    pipeline, _ = begun(several)
    with pytest.raises(BadOutput) as failed:
        go_on(pipeline, result([1]))
    assert pipeline.explained(failed.value).more["stage"] == "preprocess"
    for none in (b"", b"\xc0"):
        pipeline, _ = begun(several)
        with pytest.raises(BadOutput):
            go_on(pipeline, CallResult(output=none))


def test_one_receipt_has_what_all_of_them_took() -> None:
    """Usage and units add up, only the method's units are sold, and each hook is one stage with its wait."""
    pipeline, _ = begun()
    go_on(pipeline, result([1], CPU, stages={"gateway": 2.0, "queue": 1.0, "execute": 3.0}, cold_start={"import": 7.0}))
    own = {"gateway": 0.0, "queue": 4.0, "execute": 5.0}
    go_on(pipeline, result(3, GPU, stages=own, units={"images": 2}, sold={"images": 2}, container="c1", attempts=2))
    go_on(pipeline, result("x", CPU, stages={"gateway": 0.0, "execute": 6.0}, units={"images": 1}, spent_before=(CPU,)))
    whole = pipeline.result()

    assert (whole.spent, sorted(one.price for one in whole.spent_before)) == (GPU, ["cpu", "cpu", "cpu"])
    assert (whole.units, whole.sold, whole.container, whole.attempts) == ({"images": 3}, {"images": 2}, "c1", 2)
    assert whole.cold_start == {"preprocess: import": 7.0}
    assert list(whole.stages.items()) == [
        ("gateway", 2.0), ("preprocess", 4.0), ("queue", 4.0), ("execute", 5.0), ("postprocess", 6.0),
    ]  # fmt: skip


def test_an_error_says_which_hook_it_is_of() -> None:
    """The method's own says nothing more, nor does a cancelled call."""
    pipeline, _ = begun()
    raised = pipeline.explained(FunctionRaised("ValueError: bad", type="ValueError"))
    assert raised.detail == "ValueError: bad (in read, the @preprocess() hook)"
    assert raised.more["stage"] == "preprocess"
    assert pipeline.explained(BadInput("text: missing", field="input")).wire_code == "bad_input"
    assert "stage" not in pipeline.explained(Cancelled("The call was cancelled.")).more
    assert pipeline.named("queued") == "preprocess: queued"

    go_on(pipeline, result([1]))
    assert (pipeline.named("queued"), pipeline.stage) == ("queued", "")
    assert pipeline.explained(FunctionRaised("ValueError: bad")).detail == "ValueError: bad"
    unfit = pipeline.explained(BadInput("numbers: expected int", field="input"))
    assert (unfit.wire_code, unfit.more) == ("bad_output", {})
    assert unfit.detail == "What the @preprocess() hook returned does not fit: numbers: expected int"


def test_a_jobs_stages_are_not_tried_again_by_themselves() -> None:
    """As the job's record decides it; and only the first begins the job."""
    call = call_of(Pipeline(postprocess=BOTH.postprocess))
    call.start_hook = lambda run, go: None
    call.hooks = {HookKind.POSTPROCESS: companion(HookKind.POSTPROCESS, retries=3, idempotent=True)}
    pipeline = pipeline_of_call(call)
    assert pipeline is not None
    first = pipeline.begin()
    last = go_on(pipeline, result(3))
    assert last is not None
    assert (last.version.spec.retries, last.version.spec.idempotent) == (0, False)
    assert (first.start_hook, last.start_hook) == (call.start_hook, None)
    assert (first.gateway_ms, last.gateway_ms) == (2.0, 0.0)


def test_a_function_without_hooks_has_no_pipeline() -> None:
    """And one whose companions are not known is not run without them."""
    assert pipeline_of_call(prepared_call()) is None
    call = call_of()
    call.hooks = None
    with pytest.raises(Unavailable, match="not known here yet"):
        pipeline_of_call(call)


def test_what_a_lost_run_of_a_job_is_billed_each_stage_does_anew_unbilled() -> None:
    """All of them together for as long as it ran; and no value is held that nobody needs any more."""
    call = call_of()
    call.lost_ms = 1_000.0
    pipeline = pipeline_of_call(call)
    assert pipeline is not None
    assert pipeline.begin().lost_ms == 1_000.0
    second = go_on(pipeline, result("x" * 1_000, stages={"queue": 500.0, "execute": 300.0}))
    third = go_on(pipeline, result(3, stages={"execute": 900.0}))
    assert second is not None
    assert third is not None
    assert (second.lost_ms, third.lost_ms) == (700.0, 0.0)
    assert go_on(pipeline, result("it is 3")) is None
    assert [one.output for one in pipeline._results][:2] == [b"", b""]
