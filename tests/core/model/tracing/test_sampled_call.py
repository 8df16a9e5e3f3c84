"""The small record of an ordinary sampled call."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.messages.scheduling import TraceBatch
from pilotlight_core.model.messages.wire import decode, encode
from pilotlight_core.model.tracing.kept_call import WELL, KeptAttempt, KeptCall, KeptWhy
from pilotlight_core.model.tracing.sampled_call import MOST_OF_KIND, SampledGroup, SampledTimes
from pilotlight_core.model.tracing.trace_context import own_trace_id
from tests.builders.kept import AT_NS, CALL_ID, sampled_call, sheet_of


def test_it_becomes_the_record_that_others_have() -> None:
    """With all that is known of it."""
    attempt = KeptAttempt(
        container="c1", node="n1", outcome=WELL, ahead=2, queue=0.5, transport=0.75, batch_wait=2.0, execute=8.0
    )
    stages = {
        "gateway": 0.25, "queue": 0.5, "start": 0.0, "transport": 0.75, "batch_wait": 2.0, "execute": 8.0,
        "respond": 0.5,
    }  # fmt: skip
    assert sampled_call().whole("gw1") == KeptCall(
        id=CALL_ID, trace_id=own_trace_id(CALL_ID), threshold="fd7", tenant="acme", function="acme:shop.rank",
        ref="shop.rank@v3", version="ver_3", method="run", priority="standard", kept=KeptWhy.SAMPLED,
        arrived_ns=AT_NS, total_ms=12.0, slow_ms=300.0, stages=stages, attempts=(attempt,), batch_size=4,
        gateway="gw1",
    )  # fmt: skip


def test_it_travels_beside_whole_ones() -> None:
    """What several have in common once; a process that knows no such records reads the others. Those of a gateway of
    an earlier release too.
    """
    one, other = sampled_call(), sampled_call(id="call_2")
    former = (SampledGroup(one.kind, (one.times, other.times)),)
    for sent in (
        TraceBatch(gateway="g1", sampled=former), TraceBatch(gateway="g1", sheets=(sheet_of(one, other),)),
    ):  # fmt: skip
        assert decode(encode(sent)) == sent


def test_what_is_beyond_its_bounds_is_refused() -> None:
    """Times that cannot be, and more of them than a message has."""
    one = sampled_call()
    for wrong in (
        (msgspec.structs.replace(one.times, execute=float("nan")),),
        (msgspec.structs.replace(one.times, total_ms=-1.0),),
        (SampledTimes("x" * 2_000, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),),
        (one.times,) * (MOST_OF_KIND + 1),
    ):
        with pytest.raises(msgspec.DecodeError):
            decode(encode(TraceBatch(gateway="g1", sampled=(SampledGroup(one.kind, wrong),))))
