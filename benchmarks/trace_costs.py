"""What traces cost: a call that is judged and not kept, one that is kept, and the export of one. A part of `seeing`.

trace_us         of a call: whether it is sampled as it comes, and whether it is kept as it ends
kept_trace_us    of a call that is kept
export_us        of a kept call in the duties: its spans, as protobuf
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping

from benchmarks import report
from pilotlight_core.model.ids import new_call_id
from pilotlight_core.model.spec import SLO
from pilotlight_core.model.tracing.kept_call import KeptCall
from pilotlight_core.model.tracing.trace_sampling import TraceSampler
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.traces.otlp_encoding import export_request
from pilotlight_gateway.traces.span_tree import spans_of
from pilotlight_gateway.traces.trace_keeper import TraceKeeper
from tests.builders.calls import grant, prepared_call
from tests.builders.specs import function_spec, method, version_record

RUNS = 7
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
        kept[:] = keeper.take_unsent(2_000)

    judged, keeping = _median(judge), _median(keep)
    exported = _median(lambda: export_request([span for one in kept[:200] for span in spans_of(one)], {}))
    return {
        "trace_us": judged / len(calls) * 1e6,
        "kept_trace_us": keeping / len(kept) * 1e6,
        "export_us": exported / len(kept[:200]) * 1e6,
    }


def _median(work: Callable[[], object]) -> float:
    """Seconds of this thread's processor time."""
    spent = []
    for _ in range(RUNS):
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
