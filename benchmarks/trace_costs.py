"""What traces cost: a call that is judged and not kept, one that is kept, and the export of one. A part of `seeing`.

trace_us         of a call: whether it is sampled as it comes, and whether it is kept as it ends
kept_trace_us    of a call that is kept since it was slow, with all that is known of it
export_us        of such a call in the duties: its spans, as protobuf
sampled_us       of an ordinary call where all are sampled: told as it comes and kept as it ends, at the gateway
sampled_sent_us  the message to the duties about it: made and encoded
sampled_read_us  that message, decoded by the duties
sampled_out_us   its spans there, as protobuf
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping

from benchmarks import report
from pilotlight_core.model.ids import new_call_id
from pilotlight_core.model.messages.scheduling import MOST_OF_BATCH
from pilotlight_core.model.messages.wire import decode, encode
from pilotlight_core.model.spec import SLO
from pilotlight_core.model.tracing.kept_call import KeptCall
from pilotlight_core.model.tracing.trace_sampling import TraceSampler
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.traces.otlp_encoding import request_of
from pilotlight_gateway.traces.sampled_encoding import SpanForms
from pilotlight_gateway.traces.trace_keeper import TraceKeeper
from tests.builders.calls import grant, prepared_call
from tests.builders.specs import function_spec, method, version_record

RUNS = 15
RATIO = 0.01
STAGES = {
    "gateway": 0.2,
    "queue": 0.4,
    "start": 0.0,
    "transport": 0.5,
    "batch_wait": 2.1,
    "execute": 8.0,
    "respond": 0.1,
}
VERSION = version_record(function_spec("rank", method(), slo=SLO(p95_ms=300.0)), app="shop")


def trace_cost(*, quick: bool) -> Mapping[str, float]:
    """The figures by name, in microseconds of processor time."""
    count = 2_000 if quick else 50_000
    calls = [
        prepared_call(new_call_id("local", 1, 1.8e9 + number / 1_000.0), version=VERSION) for number in range(count)
    ]
    result = CallResult(output=b"y" * 300, stages=STAGES, grant=grant(1))
    sampler = TraceSampler(RATIO)

    def judge() -> None:
        keeper = TraceKeeper(sampler)
        for call in calls:
            call.traceparent = sampler.context_of(call.call_id)
            keeper.call_ended(call, result, STAGES, 11.3)

    kept: list[KeptCall] = []

    def keep() -> None:
        keeper = TraceKeeper(sampler, failed_per_s=1e9)
        for call in calls[:2_000]:
            keeper.call_ended(call, result, STAGES, 900.0)
        taken = keeper.take_unsent(2_000)
        kept[:] = taken.calls if taken is not None else ()

    judged, keeping = _median(judge), _median(keep)
    forms, whole = SpanForms(), kept[:200]
    exported = _median(lambda: request_of(forms.messages(whole), {}))
    return {
        **sampled_cost(calls[:2_000], result),
        "trace_us": judged / len(calls) * 1e6,
        "kept_trace_us": keeping / len(kept) * 1e6,
        "export_us": exported / len(whole) * 1e6,
    }


def sampled_cost(calls: list[PreparedCall], result: CallResult) -> Mapping[str, float]:
    """Of ordinary calls that are all sampled, by where that is paid."""
    sampler, forms = TraceSampler(1.0), SpanForms()
    keepers: list[TraceKeeper] = []

    def keep() -> None:
        keepers[:] = [keeper := TraceKeeper(sampler)]
        for call in calls:
            call.traceparent = sampler.context_of(call.call_id)
            keeper.call_ended(call, result, STAGES, 11.3)

    def send() -> None:
        batches[:] = []
        while taken := keepers[0].take_unsent(MOST_OF_BATCH):
            batches.append(encode(taken))

    batches: list[bytes] = []
    keeping = _median(keep)
    sending = _median(send, keep)
    read = [decode(each) for each in batches]
    return {
        "sampled_us": keeping / len(calls) * 1e6,
        "sampled_sent_us": sending / len(calls) * 1e6,
        "sampled_read_us": _median(lambda: [decode(each) for each in batches]) / len(calls) * 1e6,
        "sampled_out_us": _median(lambda: [request_of(forms.messages(each.sheets), {}) for each in read])
        / len(calls)
        * 1e6,
    }


def _median(work: Callable[[], object], before_each: Callable[[], object] = lambda: None) -> float:
    """Seconds of this thread's processor time."""
    spent = []
    for _ in range(RUNS):
        before_each()
        gc.collect()
        before = time.thread_time()
        work()
        spent.append(time.thread_time() - before)
    return statistics.median(spent)


def main() -> None:
    """Run, print, finish."""
    options = report.arguments("trace_costs", __doc__ or "").parse_args()
    figures = trace_cost(quick=options.quick)
    for name, value in figures.items():
        print(f"{name:16} {value:8.2f}")
    report.finish("trace_costs", dict(figures))


if __name__ == "__main__":
    main()
