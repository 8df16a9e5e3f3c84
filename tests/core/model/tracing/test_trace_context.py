"""Traceparents, and the ids that calls have in traces."""

from __future__ import annotations

import pytest

from pilotlight_core.model.ids import new_call_id
from pilotlight_core.model.tracing.trace_context import (
    EXECUTE,
    MASK_56,
    OTHERS,
    ROOT,
    SAMPLED_HERE,
    context_within,
    is_sampled,
    own_trace_id,
    parse_traceparent,
    randomness_of,
    root_context,
    sampled_state,
    span_id_of,
    trace_text,
)

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


def test_a_traceparent_says_trace_parent_and_flags() -> None:
    """And is passed on as it came."""
    found = parse_traceparent(PARENT)
    assert found is not None
    assert (found.trace_id, found.span_id, found.sampled, found.header) == (TRACE, SPAN, True, PARENT)


@pytest.mark.parametrize(
    ("text", "passed_on"),
    [
        (f"00-{TRACE}-{SPAN}-03", f"00-{TRACE}-{SPAN}-03"),  # level 2: the trace id is random
        (f"00-{TRACE}-{SPAN}-ff", f"00-{TRACE}-{SPAN}-03"),  # flags that nobody knows yet are not passed on
        (f"cc-{TRACE}-{SPAN}-01", PARENT),  # a later version
        (f"cc-{TRACE}-{SPAN}-01-what-comes", PARENT),
        (f"cc-{TRACE}-{SPAN}-01what", ""),
        (f"{PARENT}-more", ""),
        (f"ff-{TRACE}-{SPAN}-01", ""),
        (f"00-{'0' * 32}-{SPAN}-01", ""),
        (f"00-{TRACE}-{'0' * 16}-01", ""),
        (f"00-{TRACE.upper()}-{SPAN}-01", ""),
        (f"00-{TRACE}-{SPAN}", ""),
        (f"00-{TRACE}-{SPAN}-0g", ""),
        (f"00-{TRACE}-{SPAN}-01 ", ""),
        (f"00-{TRACE}-{SPAN}-0\u00b2", ""),
        ("t" * 10_000, ""),
        ("", ""),
    ],
)
def test_what_is_no_traceparent_counts_as_none(text: str, passed_on: str) -> None:
    """Whoever sent it gets an answer all the same, in a new trace."""
    assert trace_text(text.encode("latin-1")) == passed_on


@pytest.mark.parametrize(
    ("state", "passed_on"),
    [
        ("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
        (" a=1 ,, b@x=2 3 ,\t0-_*/=~", "a=1,b@x=2 3,0-_*/=~"),
        (",".join(f"v{number}=1" for number in range(32)), ",".join(f"v{number}=1" for number in range(32))),
        (",".join(f"v{number}=1" for number in range(33)), ""),  # more vendors than there may be
        ("a=1,a=2", ""),
        ("A=1", ""),
        ("a=1,b", ""),
        ("a=", ""),
        ("a=1=2", ""),
        ("=1", ""),
        ("a=\u00e4", ""),
        ("a=1\x7f", ""),
        ("a=" + "x" * 256 + ",b=" + "y" * 251, "a=" + "x" * 256 + ",b=" + "y" * 251),  # 512
        ("a=" + "x" * 256 + ",b=" + "y" * 252, ""),
        ("a=" + "x" * 257, ""),
        ("", ""),
    ],
)
def test_a_tracestate_is_passed_on_as_it_came_or_not_at_all(state: str, passed_on: str) -> None:
    """With its traceparent, to what the call makes and does; without one it means nothing."""
    text = trace_text(PARENT.encode(), state.encode("latin-1"))
    found = parse_traceparent(text)
    assert found is not None
    assert (found.header, found.state, found.text) == (PARENT, passed_on, text)
    assert context_within("call_x", text).state == passed_on
    assert trace_text(b"", state.encode("latin-1")) == ""


def test_how_many_a_call_stands_for_comes_before_what_others_know() -> None:
    """In place of what a caller's own sampler has said."""
    assert sampled_state("", "fd7") == "ot=th:fd7"
    assert sampled_state("congo=1,ot=th:8,rojo=2", "fd7") == "ot=th:fd7,congo=1,rojo=2"
    full = ",".join(f"v{number}=1" for number in range(32))
    assert sampled_state(full, "fd7").split(",")[-1] == "v30=1"


def test_a_trace_that_a_call_begins_is_known_by_the_calls_id() -> None:
    """Everywhere, without a word about it; and no two calls have the same."""
    calls = [new_call_id("local", 1, 1_800_000_000.0) for _ in range(1_000)]
    assert len({own_trace_id(call) for call in calls}) == len(calls)
    assert all(parse_traceparent(root_context(call, sampled=False).header) is not None for call in calls)
    assert own_trace_id(calls[0]).endswith(f"{randomness_of(calls[0]):014x}")


def test_the_last_bits_of_its_id_are_even() -> None:
    """Samplers decide by them: of many calls of one second about half are in each half."""
    calls = [new_call_id("local", 1, 1_800_000_000.0) for _ in range(4_000)]
    upper = sum(randomness_of(call) > MASK_56 // 2 for call in calls)
    assert 1_700 < upper < 2_300


def test_what_a_function_sees_is_below_the_span_of_its_execution() -> None:
    """In its caller's trace, with its flags; or in the one that the call begins, which is not sampled."""
    call = new_call_id("local", 1, 1_800_000_000.0)
    joined, begun = context_within(call, PARENT), context_within(call, "")
    assert (joined.trace_id, joined.flags) == (TRACE, 1)
    assert (begun.trace_id, begun.sampled) == (own_trace_id(call), False)
    assert joined.span_id == begun.span_id == span_id_of(call, EXECUTE) != span_id_of(call, ROOT)


def test_a_call_whose_id_is_a_strangers_has_a_trace_too() -> None:
    """Such as a test's."""
    assert len(own_trace_id("call~1")) == 32


@pytest.mark.parametrize(
    ("came", "sampled"),
    [("", False), (SAMPLED_HERE, True), (PARENT, True), (f"00-{TRACE}-{SPAN}-02", False), ("what", False)],
)
def test_whether_a_call_is_sampled_is_in_what_it_carries(came: str, sampled: bool) -> None:
    """Two characters, where it begins its trace; what it sees is in that trace, and sampled too."""
    assert is_sampled(came) is sampled
    assert context_within("call_x", came).sampled is sampled
    assert parse_traceparent(SAMPLED_HERE) is None
    assert trace_text(SAMPLED_HERE.encode()) == ""  # nobody can send it


def test_no_two_spans_of_a_call_have_one_id() -> None:
    """Nor of two calls; none is what stands for no span."""
    calls = [new_call_id("local", 1, 1_800_000_000.0) for _ in range(50)]
    spans = [span_id_of(call, place) for call in calls for place in range(OTHERS + 300)]
    assert len(set(spans)) == len(spans)
    assert {len(span) for span in spans} == {16}
    assert "0" * 16 not in spans
