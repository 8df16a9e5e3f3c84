"""Metrics of what tallies add up: batches, the time between tokens, tokens, retries, and what tallies take."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from pilotlight_core.host.metrics.metric_families import counter, counter_by, gauge, histogram
from pilotlight_gateway.tally.tallies import Tallies


def tally_counts(calls: Tallies, jobs: Tallies) -> Iterator[Metric]:
    """Of all tenants together; of runs of jobs what they take."""
    totals, arms, known = calls.platform, (calls, jobs), len(calls) + len(jobs)
    for name, text, observed in (
        ("pilotlight_batch_size", "Calls in the batch of a call that ended well.", totals.batch_sizes),
        ("pilotlight_batch_fill_ratio", "The same, of the most that its function allows.", totals.fills),
        ("pilotlight_inter_token_seconds", "Between two chunks of a stream.", totals.gaps),
    ):
        yield histogram(name, text, observed)
    yield counter_by("pilotlight_tokens", "Tokens that functions counted, by kind.", "kind", totals.tokens)
    yield counter("pilotlight_retries", "Starts of calls beyond their first.", totals.retries)
    yield gauge("pilotlight_tally_functions", "Functions and versions that have counts of their own.", known)
    size, dropped = sum(each.sealed_bytes for each in arms), sum(each.dropped for each in arms)
    yield gauge("pilotlight_tally_bytes", "Bytes of counts of minutes that are over.", size)
    yield counter("pilotlight_tally_dropped", "Minutes that were forgotten early, for want of room.", dropped)
