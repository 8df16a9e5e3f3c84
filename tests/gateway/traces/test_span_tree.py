"""A kept call as spans."""

from __future__ import annotations

from msgspec import structs

from pilotlight_core.model.tracing.kept_call import CallTrigger, KeptAttempt, KeptWhy
from pilotlight_core.model.tracing.trace_context import ROOT, context_within, span_id_of
from pilotlight_gateway.traces.span_tree import CONSUMER, RUNS, SERVER, Span, spans_of
from tests.builders.kept import AT_NS, CALL_ID, STAGES, kept_call

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def children_of(spans: list[Span], parent: Span) -> list[Span]:
    return [span for span in spans if span.parent == parent.span_id]


def test_a_call_is_a_root_and_its_stages_which_sum_to_it() -> None:
    """Within a millisecond; the start of a container has a child for each step."""
    spans = spans_of(kept_call())
    root = spans[0]
    stages = children_of(spans, root)
    assert [span.name for span in stages] == [*STAGES]
    assert (root.name, root.kind, root.begin_ns, root.end_ns) == ("shop.rank", SERVER, AT_NS, AT_NS + 10**9)
    assert abs(sum(span.end_ns - span.begin_ns for span in stages) - 10**9) < 10**6
    (start,) = [span for span in stages if span.name == "start"]
    assert [span.name for span in children_of(spans, start)] == ["fetch", "import", "enter"]
    assert len({span.span_id for span in spans}) == len(spans)
    assert {span.trace_id for span in spans} == {root.trace_id}


def test_its_attributes_have_the_names_that_others_use() -> None:
    spans = spans_of(kept_call(units={"prompt_tokens": 7, "completion_tokens": 40, "images": 2}))
    said = spans[0].attributes
    assert said | {
        "faas.trigger": "http", "faas.coldstart": True, "faas.invocation_id": CALL_ID, "faas.name": "shop.rank",
        "faas.version": "shop.rank@v3", "faas.instance": "c1", "pilotlight.kept": "slow", "pilotlight.batch_size": 4,
        "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 40, "pilotlight.units.images": 2,
        "pilotlight.tenant": "acme",
    } == said  # fmt: skip
    assert "error.type" not in said
    (execute,) = [span for span in spans if span.name == RUNS]
    assert execute.attributes["gen_ai.usage.output_tokens"] == 40


def test_a_warm_call_says_so() -> None:
    assert spans_of(kept_call(cold_start=None))[0].attributes["faas.coldstart"] is False


def test_spans_of_the_functions_own_code_are_below_its_execution() -> None:
    """Of the last attempt: the function knows its call, and not how often it was tried."""
    died = KeptAttempt(container="c0", outcome="died", queue=1.0, execute=10.0)
    last = kept_call().attempts[0]
    spans = spans_of(kept_call(attempts=(died, last), stages=STAGES | {"queue": 41.0, "execute": 160.0}))
    executes = [span for span in spans if span.name == RUNS]
    assert [span.span_id == context_within(CALL_ID, "").span_id for span in executes] == [False, True]
    assert [span.error for span in executes] == ["died", ""]
    assert {span.parent for span in executes} == {spans[0].span_id}


def test_it_stands_below_its_callers_span() -> None:
    """In the caller's trace."""
    trace, parent = PARENT.split("-")[1:3]
    root, *rest = spans_of(kept_call(trace_id=trace, parent_span=parent))
    assert (root.trace_id, root.parent, root.span_id) == (trace, parent, span_id_of(CALL_ID, ROOT))
    assert {span.trace_id for span in rest} == {trace}


def test_a_job_has_a_trace_of_its_own_that_names_the_request() -> None:
    """A job may run days after it."""
    root = spans_of(kept_call(trigger=CallTrigger.JOB, link=PARENT))[0]
    assert (root.kind, [link.header for link in root.links], root.attributes["faas.trigger"]) == (
        CONSUMER, [PARENT], "pubsub"
    )  # fmt: skip


def test_the_execution_of_a_batch_is_linked_to_those_of_the_other_calls() -> None:
    """Of each attempt to its own; what is no traceparent is left out."""
    (last,) = kept_call().attempts
    died = KeptAttempt(container="c0", outcome="died", queue=1.0, execute=10.0, mates=("what",))
    mate = context_within("call_other", "")
    attempts = (died, structs.replace(last, mates=(PARENT, mate.header)))
    spans = spans_of(kept_call(attempts=attempts, stages=STAGES | {"queue": 41.0, "execute": 160.0}))
    linked = [[link.header for link in span.links] for span in spans if span.name == RUNS]
    assert linked == [[], [PARENT, mate.header]]
    assert not any(span.links for span in spans if span.name != RUNS)


def test_what_vendors_know_of_a_trace_is_passed_on() -> None:
    """Of a job with the link to its request."""
    call = kept_call(state="congo=1", kept=KeptWhy.SAMPLED, threshold="fd7", link=f"{PARENT} rojo=2")
    root = spans_of(call)[0]
    assert (root.trace_state, [link.state for link in root.links]) == ("ot=th:fd7,congo=1", ["rojo=2"])
    assert spans_of(kept_call(state="congo=1"))[0].trace_state == "congo=1"


def test_a_sampled_call_says_how_many_it_stands_for() -> None:
    """One that was kept for another reason does not, or counts by it would be wrong."""
    assert spans_of(kept_call(kept=KeptWhy.SAMPLED, threshold="fd7"))[0].trace_state == "ot=th:fd7"
    assert spans_of(kept_call(threshold="fd7"))[0].trace_state == ""


def test_a_failure_has_its_code() -> None:
    """A refused request is a span alone, but for the part that refused it."""
    refused = kept_call(
        kept=KeptWhy.ERROR, code="rate_limited", function="", ref="", route="/v1/functions/{ref}/calls", stages={},
        attempts=(), cold_start=None, total_ms=0.4, limits=("requests_per_s",),
    )  # fmt: skip
    root, *rest = spans_of(refused)
    assert (root.name, root.error, root.attributes["error.type"]) == (
        "/v1/functions/{ref}/calls", "rate_limited", "rate_limited",
    )  # fmt: skip
    assert root.attributes["pilotlight.limits"] == "requests_per_s"
    assert [span.name for span in rest] == ["gateway"]
