"""A tenant's own functions as Prometheus reads them: what all gateways counted, each with a label of its own.

Counters of several gateways are not added up here, since a gateway that begins anew would look like a reset of all:
`sum without (gateway)` does it right. Names that users of language models chart are there beside ours, where a
function has an engine or counts tokens: vLLM's, which the Gateway API Inference Extension reads too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from pilotlight_core.host.metrics import ProcessMetrics
from pilotlight_core.host.metrics.histogram import FIRST_CHUNK_SECONDS, SECONDS
from pilotlight_core.model.messages.scheduling import TalliesTold
from pilotlight_core.model.messages.seeing.tallies import JOBS, CallTotals
from pilotlight_gateway.tally.tally_totals import GAP_SECONDS, TotalCounts
from pilotlight_gateway.tally.tally_views import name_of_function

MEDIA_TYPES = ("text/plain", "application/openmetrics-text")
MOST_FUNCTIONS = 50
"""Of one gateway, those that were called there first; the rest is "other". Which ones they are does not change while
the gateway runs: if a function came to be among them later, what "other" has counted would fall."""
OTHER = "other"
LABELS = ("function", "gateway")
NO_TOTALS = CallTotals()
MODEL = ("model_name",)


class ShownTotals(NamedTuple):
    """Of one function at one gateway."""

    function: str
    gateway: str
    """This run of it: a name says how the platform is built."""
    totals: CallTotals
    """Of calls whose callers wait."""
    jobs: CallTotals = NO_TOTALS
    """Of runs of jobs."""


class EngineSums:
    """The engines of one function's containers."""

    def __init__(self) -> None:
        self.running = self.waiting = 0
        self.kv_used = self.kv_total = 0

    def add(self, engine: Mapping[str, Any]) -> None:
        """Add one container's."""
        self.running += int(engine["running"])
        self.waiting += int(engine["waiting"])
        self.kv_used += int(engine["kv_used"])
        self.kv_total += int(engine["kv_total"])

    @property
    def kv_used_ratio(self) -> float:
        """How full the room for keys and values is, of all together."""
        return min(1.0, self.kv_used / self.kv_total) if self.kv_total else 0.0


class TenantMetrics:
    """Made for one scrape. `containers`: the tenant's, as `CallPort.containers` has them."""

    def __init__(self, told: Iterable[TalliesTold], containers: Iterable[dict[str, Any]]) -> None:
        self._shown = shown_totals(told)
        self._states: dict[tuple[str, str], int] = {}
        self._engines: dict[str, EngineSums] = {}
        known = {each.function for each in self._shown}
        for container in containers:
            function = f"{container['app']}.{container['function']}"
            if function not in known and len(known) >= MOST_FUNCTIONS:
                function = OTHER
            known.add(function)
            state = (function, str(container["state"]))
            self._states[state] = self._states.get(state, 0) + 1
            if container.get("engine") is not None:
                self._engines.setdefault(function, EngineSums()).add(container["engine"])

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """The text, and its media type: what an Accept header asks for."""
        return ProcessMetrics(self.collect).render(accept)

    def collect(self) -> Iterator[Metric]:
        yield from self._counters()
        text = "Arrival to answer of calls that ended well."
        durations = [
            ((each.function, each.gateway), SECONDS, each.totals.durations, each.totals.durations_s)
            for each in self._shown
        ]
        yield _histogram("pilotlight_function_duration_seconds", text, LABELS, durations)
        containers = GaugeMetricFamily(
            "pilotlight_function_containers", "Containers by state.", labels=("function", "state")
        )
        for (function, state), count in sorted(self._states.items()):
            containers.add_metric((function, state), count)
        yield containers
        yield from self._as_vllm()

    def _counters(self) -> Iterator[Metric]:
        calls = CounterMetricFamily(
            "pilotlight_function_calls", "Calls that ended.", labels=(*LABELS, "outcome", "code")
        )
        units = CounterMetricFamily(
            "pilotlight_function_units", "What functions counted themselves.", labels=(*LABELS, "unit")
        )
        for function, gateway, totals, _ in self._shown:
            _add_outcomes(calls, (function, gateway), totals)
            for unit, count in sorted(totals.units.items()):
                units.add_metric((function, gateway, unit), count)
        yield calls
        yield units
        for name, text in (
            ("cold_calls", "Calls that waited for the start of a container."),
            ("retried", "Calls that were started more than once."),
            ("batched", "Calls whose batch is known."),
            ("batch_sizes", "The sizes of their batches: divided by their number, the mean."),
        ):
            family = CounterMetricFamily(f"pilotlight_function_{name}", text, labels=LABELS)
            for function, gateway, totals, _ in self._shown:
                family.add_metric((function, gateway), getattr(totals, name))
            yield family
        gpu = CounterMetricFamily(
            "pilotlight_function_gpu_seconds", "What calls used of whole GPUs together.", labels=LABELS
        )
        for function, gateway, totals, _ in self._shown:
            gpu.add_metric((function, gateway), totals.gpu_ms / 1000.0)
        yield gpu
        yield from self._of_jobs()

    def _of_jobs(self) -> Iterator[Metric]:
        """Runs of jobs, of functions that had some."""
        runs = CounterMetricFamily(
            "pilotlight_function_job_runs", "Runs of jobs that ended.", labels=(*LABELS, "outcome", "code")
        )
        gpu = CounterMetricFamily(
            "pilotlight_function_job_gpu_seconds", "What runs of jobs used of whole GPUs together.", labels=LABELS
        )
        units = CounterMetricFamily(
            "pilotlight_function_job_units", "What functions counted themselves in runs.", labels=(*LABELS, "unit")
        )
        for function, gateway, _, jobs in self._shown:
            if not jobs.ended and not jobs.failures:
                continue
            _add_outcomes(runs, (function, gateway), jobs)
            gpu.add_metric((function, gateway), jobs.gpu_ms / 1000.0)
            for unit, count in sorted(jobs.units.items()):
                units.add_metric((function, gateway, unit), count)
        yield runs
        yield gpu
        yield units

    def _as_vllm(self) -> Iterator[Metric]:
        """By the function's name as the model's, without labels that vLLM's have not."""
        for name, text, field in (
            ("vllm:num_requests_running", "Calls in engines.", "running"),
            ("vllm:num_requests_waiting", "Calls that wait in engines.", "waiting"),
            ("vllm:kv_cache_usage_perc", "How full the room for keys and values is: 1 is full.", "kv_used_ratio"),
        ):
            gauge = GaugeMetricFamily(name, text, labels=MODEL)
            for function, sums in sorted(self._engines.items()):
                gauge.add_metric((function,), getattr(sums, field))
            yield gauge
        models = [each for each in self._shown if _is_model(each, self._engines)]
        labels = (*MODEL, "gateway")
        for name, text, bounds, field in (
            ("vllm:time_to_first_token_seconds", "Arrival to the first chunk.", FIRST_CHUNK_SECONDS, "first_chunks"),
            ("vllm:inter_token_latency_seconds", "Between two chunks.", GAP_SECONDS, "gaps"),
            ("vllm:e2e_request_latency_seconds", "Arrival to answer.", SECONDS, "durations"),
        ):
            yield _histogram(name, text, labels, [
                ((each.function, each.gateway), bounds, getattr(each.totals, field), getattr(each.totals, f"{field}_s"))
                for each in models
            ])  # fmt: skip
        for name, text, unit in (
            ("vllm:prompt_tokens", "Tokens of prompts.", "prompt_tokens"),
            ("vllm:generation_tokens", "Tokens of answers.", "completion_tokens"),
        ):
            tokens = CounterMetricFamily(name, text, labels=labels)
            for each in models:
                tokens.add_metric((each.function, each.gateway), each.totals.units.get(unit, 0))
            yield tokens


def shown_totals(told: Iterable[TalliesTold]) -> list[ShownTotals]:
    """The functions that each gateway tells of first, which are those that it has known for longest, and the rest of
    each as one.
    """
    found = []
    for number, answer in enumerate(told):
        process = answer.own.process or f"before{number}"
        own: dict[str, tuple[TotalCounts, TotalCounts]] = {}
        for part in answer.parts:
            if part.totals is not None:
                name = name_of_function(part.function)
                if name not in own and len(own.keys() - {OTHER}) >= MOST_FUNCTIONS:
                    name = OTHER
                calls, jobs = own.setdefault(name, (TotalCounts(), TotalCounts()))
                (jobs if part.arm == JOBS else calls).merge(part.totals)
        found += [
            ShownTotals(name, process, calls.value(), jobs.value()) for name, (calls, jobs) in sorted(own.items())
        ]
    return found


def _add_outcomes(family: CounterMetricFamily, labels: tuple[str, str], totals: CallTotals) -> None:
    family.add_metric((*labels, "ok", ""), totals.ended)
    for code, count in sorted(totals.failures.items()):
        family.add_metric((*labels, "error", code), count)


def _is_model(each: ShownTotals, engines: Mapping[str, EngineSums]) -> bool:
    return each.function in engines or "completion_tokens" in each.totals.units


Observed = tuple[tuple[str, ...], tuple[float, ...], tuple[int, ...], float]
"""Labels, bounds, counts by bucket, and the sum."""


def _histogram(name: str, text: str, labels: tuple[str, ...], observed: Iterable[Observed]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=labels)
    for values, bounds, counts, total in observed:
        below, buckets = 0, []
        for bound, count in zip((*map(str, bounds), "+Inf"), counts, strict=True):
            below += count
            buckets.append((bound, float(below)))
        family.add_metric(values, buckets, total)
    return family
