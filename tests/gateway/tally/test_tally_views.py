"""What is shown of a window says what it says, and leaves out what is not the reader's."""

from __future__ import annotations

from pilotlight_core.model.messages.seeing.tallies import BatchTally, FunctionTally, GatewayTally, HomeTally
from pilotlight_gateway.tally.sketch import Sketch
from pilotlight_gateway.tally.tally_views import (
    function_stats,
    instant_text,
    name_of_function,
    quantiles_of,
    row_of,
    stats_list,
)
from pilotlight_gateway.tally.tally_window import FoundWindows, FunctionWindow
from pilotlight_gateway.tenancy.shown_names import SOMEBODY

AT = 1_790_000_000_000_000_000


def window(**more: object) -> FunctionWindow:
    fields = {"function": "acme:shop.hello", "since_ns": AT, "until_ns": AT + 100 * 10**9} | more
    return FunctionWindow(**fields)  # type: ignore[arg-type]


def test_rates_and_means_are_over_the_window() -> None:
    tally = FunctionTally(
        arrivals=50, ended=40, failures={"internal": 5, "bad_input": 5}, good={"availability": 40},
        bad={"availability": 5}, inside_ms=200_000.0,
    )  # fmt: skip
    home = HomeTally(queued_s=150.0, ready_s=200.0, shortage_s=25.0, busy_s=100.0)
    seen = function_stats(window(tally=tally, home=home), [], operator=False)
    assert (seen.function, seen.calls, seen.per_s, seen.inside) == ("shop.hello", 50, 0.5, 2.0)
    assert seen.availability == round(40 / 45, 6)
    assert (seen.home.queued, seen.home.ready, seen.home.shortage, seen.home.busy) == (1.5, 2.0, 0.25, 1.0)


def test_a_function_that_nobody_could_blame_the_platform_for_has_no_availability() -> None:
    seen = function_stats(window(tally=FunctionTally(failures={"bad_input": 3})), [], operator=False)
    assert seen.availability is None


def test_runs_of_jobs_are_shown_beside_the_calls() -> None:
    """In lists and steps too."""
    jobs = FunctionTally(ended=30, failures={"oom": 10}, batches={4: BatchTally(calls=30, gpu_ms=600.0)})
    one = window(tally=FunctionTally(ended=5), jobs=jobs)
    seen = function_stats(one, [one], operator=False)
    assert (seen.calls, seen.jobs.runs, seen.jobs.per_s, seen.jobs.failed) == (5, 40, 0.4, {"oom": 10})
    assert (seen.gpu_ms, seen.jobs.gpu_ms, seen.jobs.batch_size) == (0.0, 600.0, 4.0)
    assert (seen.series[0].calls, seen.series[0].job_runs, seen.series[0].job_gpu_ms) == (5, 40, 600.0)
    assert (row_of(one).calls, row_of(one).job_runs) == (5, 40)


def test_gateways_are_named_to_operators() -> None:
    """To a tenant one that is missing is "a gateway"."""
    one = window(gateways=(GatewayTally(gateway="gw-1"),), silent=("gw-2",))
    seen = function_stats(one, [], operator=True)
    assert ([each.gateway for each in seen.gateways], seen.silent) == (["gw-1"], ["gw-2"])
    seen = function_stats(one, [], operator=False)
    assert (seen.gateways, seen.silent) == ([], [SOMEBODY])
    found = FoundWindows(since_ns=AT, until_ns=AT + 10**9, windows=(), gateways=(), silent=("gw-1", "gw-2"))
    assert stats_list(found, 10, operator=False).silent == [SOMEBODY] * 2
    assert stats_list(found, 10, operator=True).silent == ["gw-1", "gw-2"]


def test_durations_are_shown_as_quantiles() -> None:
    sketch = Sketch()
    for ms in range(1, 101):
        sketch.add(float(ms))
    seen = quantiles_of(sketch.value())
    assert (seen.count, seen.mean, seen.max) == (100, 50.5, 100.0)
    assert abs(seen.p95 - 95) < 2


def test_names_and_instants() -> None:
    assert (name_of_function("acme:shop.hello"), name_of_function("acme:")) == ("shop.hello", "other")
    assert instant_text(1_500_000_000) == "1970-01-01T00:00:01.500Z"
