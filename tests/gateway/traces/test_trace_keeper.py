"""Which calls are kept, and what of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput, NotFound, TooMuch, Unauthenticated
from pilotlight_core.model.ids import new_call_id
from pilotlight_core.model.limits import ReachedLimit
from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.messages.scheduling import MOST_OF_BATCH, TraceBatch
from pilotlight_core.model.spec import SLO
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_core.model.tracing.kept_call import CallTrigger, KeptAttempt, KeptCall, KeptWhy
from pilotlight_core.model.tracing.packed_calls import unpacked
from pilotlight_core.model.tracing.sampled_call import MOST_OF_SHEET
from pilotlight_core.model.tracing.trace_context import SAMPLED_HERE, own_trace_id, parse_traceparent
from pilotlight_core.model.tracing.trace_sampling import UNSAMPLED, TraceSampler
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_sink import FailedCall
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.traces.kept_calls import MOST_KEPT
from pilotlight_gateway.traces.trace_keeper import MOST_UNSENT, SLOW_MS, RefusedAsk, TraceKeeper
from tests.builders.calls import grant, prepared_call
from tests.builders.specs import function_spec, method, version_record

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ASKED, NOT_ASKED = f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00"
LAST = f"00-{'f' * 32}-{SPAN}-00"
STAGES = {
    "gateway": 1.0,
    "queue": 2.0,
    "start": 0.0,
    "transport": 1.0,
    "batch_wait": 0.0,
    "execute": 5.0,
    "respond": 1.0,
}
ROUTE = "/v1/functions/{ref}/calls"
ID = new_call_id("local", 1, 1_800_000_000.0)


class Clock:
    at = 100.0

    def __call__(self) -> float:
        return self.at


def keeper(ratio: float = 0.0) -> TraceKeeper:
    return TraceKeeper(TraceSampler(ratio), gateway="gw1", clock=Clock(), wall_ns=lambda: 10**18)


def call(call_id: str = ID, *, slo: float | None = 300.0, **more: Any) -> PreparedCall:
    version = version_record(function_spec("rank", method(), slo=SLO(p95_ms=slo)), app="shop", id=f"ver_{slo}")
    return prepared_call(call_id, version=version, **more)


def ended(kept_by: TraceKeeper, one: PreparedCall, total_ms: float = 10.0, **more: Any) -> KeptCall | None:
    """What is kept of a call that ended well."""
    fields: dict[str, Any] = {"output": b"secret", "stages": STAGES, "grant": grant(1, ahead=2)}
    result = CallResult(**fields | more)
    kept_by.call_ended(one, result, STAGES, total_ms)
    return kept_by.calls.find(one.tenant, one.call_id)


def whole_ones(kept_by: TraceKeeper) -> list[KeptCall]:
    """What is to be sent, but for ordinary calls."""
    return list(taken(kept_by).calls)


def taken(kept_by: TraceKeeper, most: int = MOST_OF_BATCH) -> TraceBatch:
    """What is to be sent."""
    return kept_by.take_unsent(most) or TraceBatch(gateway="gw1")


def test_an_ordinary_call_is_not_kept() -> None:
    """Nor a second one, of whose version more is known by then."""
    kept_by = keeper()
    assert [ended(kept_by, call()) for _ in range(2)] == [None, None]
    assert (len(kept_by.calls), kept_by.take_unsent(10)) == (0, None)


@pytest.mark.parametrize(
    ("slo", "unusual", "total_ms", "is_slow"),
    [
        (300.0, 50.0, 299.0, False),
        (300.0, 50.0, 300.0, True),
        (None, 50.0, 60.0, True),
        (None, None, 5_000.0, False),
        (None, None, SLOW_MS, True),
    ],
)
def test_a_call_is_slow_by_its_functions_word_or_by_what_is_usual(
    slo: float | None, unusual: float | None, total_ms: float, is_slow: bool
) -> None:  # fmt: skip
    kept_by = keeper()
    kept_by.unusual_ms = lambda _: unusual
    kept = ended(kept_by, call(slo=slo), total_ms)
    assert (kept is not None and kept.kept is KeptWhy.SLOW) is is_slow


def test_what_is_usual_is_looked_up_anew() -> None:
    """Not of each call, and not for ever."""
    usual = [50.0]
    clock = Clock()
    kept_by = TraceKeeper(UNSAMPLED, clock=clock)
    kept_by.unusual_ms = lambda _: usual[0]
    ended(kept_by, call(slo=None), 60.0)
    usual[0] = 100.0
    assert ended(kept_by, call("b", slo=None), 60.0) is not None
    clock.at += 60.0
    assert ended(kept_by, call("c", slo=None), 60.0) is None


def test_a_callers_wish_is_kept_within_its_tenants_rate() -> None:
    """The flag, and a trace id that is chosen so that it is sampled: nobody orders more than 10 a second."""
    for traceparent in (ASKED, LAST):
        kept_by = keeper(0.01)
        kept = [ended(kept_by, call(f"call_{number}", traceparent=traceparent)) for number in range(500)]
        assert sum(one is not None for one in kept) == 100  # what may come at once
        other = ended(kept_by, call("other", traceparent=traceparent, tenant="other"))
        assert other is not None
        assert (other.trace_id, other.parent_span) == tuple(traceparent.split("-")[1:3])


def test_a_traceparent_that_asks_for_nothing_gets_nothing() -> None:
    assert ended(keeper(), call(traceparent=NOT_ASKED)) is None


def test_a_sampled_call_began_the_trace() -> None:
    """It stands for so many; none is above it."""
    kept_by = keeper(1.0)
    kept = ended(kept_by, call(traceparent=TraceSampler(1.0).context_of(ID)))
    assert kept is not None
    assert (kept.kept, kept.threshold, kept.parent_span, kept.trace_id) == (
        KeptWhy.SAMPLED, "0", "", own_trace_id(ID)
    )  # fmt: skip


def test_an_ordinary_sampled_call_is_kept_by_little_and_told_of_whole() -> None:
    """As any other: what is left out is what all calls of its kind have."""
    kept_by, one = keeper(1.0), call(traceparent=SAMPLED_HERE)
    spent = Spent(ns=5, ppm=1, price="h100", batch_size=4)
    small = ended(kept_by, one, spent=spent, mates=(LAST,))
    whole = ended(keeper(1.0), one, spent=spent, mates=(LAST,), units={"images": 1})
    assert whole is not None
    assert small == msgspec.structs.replace(whole, units={})
    sent = taken(kept_by)
    (sheet,) = sent.sheets
    assert (sent.calls, [each.whole("gw1") for each in unpacked(sheet.kinds, sheet.records)]) == ((), [small])


@pytest.mark.parametrize(
    ("more", "course"),
    [
        ({"traceparent": ASKED}, {}),
        ({"start_hook": lambda _run, _go: None}, {}),
        ({}, {"cold_start": {}}),
        ({}, {"trail": (KeptAttempt(outcome="died"),)}),
        ({}, {"units": {"images": 1}}),
        ({}, {"fallback": "shop.rank@v1"}),
        ({}, {"grant": None}),
    ],
)
def test_what_is_more_than_ordinary_is_kept_whole(more: dict[str, Any], course: dict[str, Any]) -> None:
    kept_by = keeper(1.0)
    ended(kept_by, call(**{"traceparent": SAMPLED_HERE} | more), **course)
    sent = taken(kept_by)
    assert (len(sent.calls), sent.sheets) == (1, ())


def test_of_many_fast_calls_few_are_kept_and_of_slow_ones_all() -> None:
    """One of a thousand is sampled; every call beyond its level is there, up to a burst of its tenant's."""
    one_of_a_thousand = TraceSampler(0.001)
    kept_by = TraceKeeper(one_of_a_thousand, clock=Clock(), wall_ns=lambda: 10**18)
    slow = set()
    for number in range(10_000):
        call_id = new_call_id("local", 1, 1_800_000_000.0 + number)
        is_slow = number % 50 == 7
        ended(kept_by, call(call_id, traceparent=one_of_a_thousand.context_of(call_id)), 301.0 if is_slow else 10.0)
        slow |= {call_id} if is_slow else set()
    kept = {one.id: one.kept for one in taken(kept_by, 20_000).calls}
    assert {name for name, why in kept.items() if why is KeptWhy.SLOW} == slow
    assert sum(why is KeptWhy.SAMPLED for why in kept.values()) <= 30


def test_a_jobs_run_is_kept_when_the_request_that_stored_it_asked() -> None:
    """In a trace of its own."""
    job = call(link=ASKED, start_hook=lambda _run, _go: None)
    kept = ended(keeper(), job)
    assert kept is not None
    assert (kept.kept, kept.link, kept.trace_id, kept.trigger) == (
        KeptWhy.ASKED, ASKED, own_trace_id(ID), CallTrigger.JOB
    )  # fmt: skip
    assert ended(keeper(), call("b", link=NOT_ASKED)) is None


def test_what_is_kept_has_the_calls_course_and_nothing_that_it_carried() -> None:
    """Neither arguments nor answer."""
    one = call(input=b"secret", traceparent=f"{ASKED} congo=1", parent="call_p", stream=True)
    died = KeptAttempt(container="c0", outcome="died", queue=1.5)
    spent = Spent(ns=5, ppm=1, price="h100", batch_size=4)
    course = {"cold_start": {"load": 2.0}, "trail": (died,), "spent": spent, "units": {"images": 2}, "mates": (LAST,)}
    kept = ended(keeper(), one, 400.0, **course)
    assert kept is not None
    assert (kept.function, kept.ref, kept.tenant, kept.parent, kept.trigger) == (
        one.function, one.version.ref, "acme", "call_p", CallTrigger.NESTED
    )  # fmt: skip
    assert (kept.batch_size, kept.units, kept.cold_start, kept.stream) == (4, {"images": 2}, {"load": 2.0}, True)
    assert [(each.outcome, each.container, each.node, each.ahead, each.queue) for each in kept.attempts] == [
        ("died", "c0", "", 0, 1.5), ("ok", "c1", "n1", 2, 0.5),
    ]  # fmt: skip
    assert [each.mates for each in kept.attempts] == [(), (LAST,)]
    assert (kept.trace_id, kept.parent_span, kept.state) == (TRACE, SPAN, "congo=1")
    assert kept.arrived_ns == 10**18 - 400 * 10**6
    assert b"secret" not in msgspec.msgpack.encode(kept)


def test_every_failed_call_is_kept_with_how_far_it_came() -> None:
    """Up to a rate for each tenant, beyond which they are counted."""
    kept_by = keeper()
    course = CallResult(output=b"", stages={"queue": 7.0}, trail=(KeptAttempt(outcome="lost"),))
    for number in range(600):
        one = call(f"call_{number}")
        kept_by.call_failed(
            FailedCall("container_died", "acme", one.version, one, course, 9.0, is_client_gone=False, detail="It died.")
        )
    kept = kept_by.calls.find("acme", "call_0")
    assert kept is not None
    assert (kept.code, kept.detail, kept.stages, len(kept.attempts), kept.kept) == (
        "container_died", "It died.", {"queue": 7.0}, 1, KeptWhy.ERROR
    )  # fmt: skip
    assert len(kept_by.calls) == 500
    shown = {
        (sample.name, *sample.labels.values()): sample.value
        for metric in kept_by.collect()
        for sample in metric.samples
    }
    assert shown["pilotlight_calls_kept_total", "error"] == 500
    assert shown["pilotlight_calls_not_kept_total", "rate"] == 100
    assert shown["pilotlight_kept_calls",] == 500


def test_a_refused_request_is_kept_by_the_id_that_its_caller_was_told() -> None:
    """It was no call yet; the limit that it ran into is named."""
    kept_by = keeper()
    limit = ReachedLimit(limit="requests_per_s", tenant="acme", allowed=70.0)
    error = TooMuch("acme makes 70 a second.", code="rate_limited", retry_after=0.25, limits=(limit,))
    kept_by.refused(RefusedAsk("acme", "req_1", "", ROUTE, call().version), error, 0.5)
    kept = kept_by.calls.find("acme", "req_1")
    assert kept is not None
    assert (kept.code, kept.limits, kept.retry_after, kept.function, kept.detail, kept.route) == (
        "rate_limited", ("requests_per_s",), 0.25, "acme:shop.rank", "acme makes 70 a second.", ROUTE
    )  # fmt: skip
    assert parse_traceparent(f"00-{kept.trace_id}-{SPAN}-00") is not None


def test_what_its_answer_says_of_a_failed_call_is_added() -> None:
    """Once; the duties get it too."""
    kept_by, one = keeper(), call()
    kept_by.call_failed(FailedCall("queue_full", "acme", one.version, one, None, 1.0, is_client_gone=False))
    limit = ReachedLimit(limit="queue_calls", tenant="acme", allowed=5.0)
    kept_by.refused(RefusedAsk("acme", ID, ID), TooMuch("Full.", code="queue_full", limits=(limit,)), 1.0)
    kept_by.refused(RefusedAsk("acme", ID, ID), NotFound("Gone."), 1.0)
    assert [(each.code, each.limits) for each in whole_ones(kept_by)] == [("queue_full", ("queue_calls",))]


def test_what_a_function_or_its_caller_has_written_is_not_kept() -> None:
    """An error about arguments may have them in its words. Who is nobody's tenant keeps nothing at all."""
    kept_by = keeper()
    kept_by.refused(RefusedAsk("acme", "req_1"), BadInput("name: 'Ada' is no number.", field="name"), 1.0)
    kept_by.refused(RefusedAsk("", "req_2"), Unauthenticated("No key."), 1.0)
    kept_by.refused(RefusedAsk("acme", "req_3"), Unauthenticated("It has expired.", code="key_expired"), 1.0)
    assert [(each.id, each.detail) for each in whole_ones(kept_by)] == [("req_1", "")]


def test_what_nobody_takes_is_bounded() -> None:
    """While the duties are away the oldest go."""
    kept_by = keeper(1.0)
    for number in range(5_000):
        ended(kept_by, call(new_call_id("local", 1, number), traceparent=TraceSampler(1.0).context_of("x")))
    sent = taken(kept_by, 10_000)
    assert MOST_UNSENT - MOST_OF_SHEET <= sum(sheet.count for sheet in sent.sheets) <= MOST_UNSENT
    assert len(kept_by.calls) == MOST_KEPT


def test_nothing_stays_of_an_erased_tenant() -> None:
    """Neither what can be told of nor what the duties have yet to get; of others all does."""
    kept_by = keeper()
    for tenant in ("acme", "other"):
        kept_by.refused(RefusedAsk(tenant, f"req_{tenant}"), TooMuch("Slow down.", code="rate_limited"), 1.0)
    kept_by.forget_erased("tenant.acme", TenantRecord(name="acme", created_at=1.0))
    assert len(kept_by.calls) == 2
    kept_by.forget_erased("tenant.acme", TenantRecord(name="acme", created_at=1.0, erased_at=2.0))
    kept_by.forget_erased("tenant.other", None)
    assert [call.tenant for call in taken(kept_by).calls] == ["other"]
    assert kept_by.calls.find("acme", "req_acme") is None
