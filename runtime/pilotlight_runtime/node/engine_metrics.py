"""Metrics of the engines in an agent's containers: tokens, sequences, and how full their rooms are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import Metric

from pilotlight_core.host.metrics.metric_families import counter_by, gauge, gauge_by
from pilotlight_core.model.messages.engine_report import EngineReport

KINDS = {"prefill": "prefill_tokens", "decode": "decode_tokens", "stored": "prefix_tokens"}
"""By label, the counter of a report."""


class EngineMetrics:
    """Sums what engines tell, whose counters end with their container, and whose word is a tenant's."""

    def __init__(self) -> None:
        self._tokens = dict.fromkeys(KINDS, 0)
        self._last: dict[str, EngineReport] = {}
        """By container, as it was added last."""

    def collect(self, reports: Iterable[tuple[str, EngineReport]]) -> Iterator[Metric]:
        """The metrics, with what these containers tell now."""
        present = dict(reports)
        for container, report in present.items():
            before = self._last.get(container, EngineReport())
            for kind, field in KINDS.items():
                self._tokens[kind] += max(0, getattr(report, field) - getattr(before, field))
        self._last = present
        text = "Tokens of engines on this node: computed of prompts, computed one by one, and found stored."
        yield counter_by("pilotlight_agent_engine_tokens", text, "kind", self._tokens)
        each = present.values()
        text = "Calls in engines on this node."
        states = {"running": sum(one.running for one in each), "waiting": sum(one.waiting for one in each)}
        yield gauge_by("pilotlight_agent_engine_calls", text, "state", states)
        text = "How full the room for keys and values is, of the engine where it is fullest: 0 to 1."
        yield gauge(
            "pilotlight_agent_engine_kv_used_ratio", text, max((one.kv_used_ratio for one in each), default=0.0)
        )
        text = "In what time 95 % of calls lately had their first token, of the engine where it took longest."
        yield gauge("pilotlight_agent_engine_time_to_first_token_seconds", text, _longest_s(each, "first_token_ms"))
        text = "In what time 95 % of tokens lately came after the one before, of the engine where it took longest."
        yield gauge("pilotlight_agent_engine_inter_token_seconds", text, _longest_s(each, "inter_token_ms"))


def _longest_s(reports: Iterable[EngineReport], field: str) -> float:
    return max((getattr(one, field) / 1000 for one in reports), default=0.0)
