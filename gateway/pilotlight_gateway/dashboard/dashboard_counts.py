"""What the dashboard's process counts of itself: who looks, what was asked, and what gateways did not answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.core import CounterMetricFamily, Metric

from pilotlight_core.host.metrics.histogram import Histogram
from pilotlight_core.host.metrics.metric_families import counter_by, gauge, histogram
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiAnswer, ApiProblem, GatewayApi

KINDS = ("page", "action", "login", "stream", "file", "other")
"""Of requests."""
CLASSES = ("2xx", "3xx", "4xx", "5xx")
OUTCOMES = ("answered", "refused", "failed", "unanswered")
"""Of what gateways were asked: well; by a refusal of the API; by a fault of theirs; not at all."""
PAGE_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class DashboardCounts:
    """Plain numbers, which are turned into metrics at a scrape. Labels are closed sets: nobody's name is in one."""

    requests: Counter[tuple[str, str]] = field(
        default_factory=lambda: Counter({(kind, each): 0 for kind in KINDS for each in CLASSES})
    )
    asked: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(OUTCOMES, 0)))
    pages: Histogram = field(default_factory=lambda: Histogram(PAGE_SECONDS))

    def request_answered(self, kind: str, status: int, seconds: float) -> None:
        """One more of a browser's requests is answered."""
        self.requests[kind if kind in KINDS else "other", f"{min(5, max(2, status // 100))}xx"] += 1
        if kind == "page":
            self.pages.observe(seconds)

    def collect(self, viewers: Callable[[], int], streams: Callable[[], int]) -> Iterator[Metric]:
        """With how many look at the moment, and how many streams are open."""
        yield gauge("pilotlight_dashboard_viewers", "Sessions that looked within the last seconds.", viewers())
        yield gauge("pilotlight_dashboard_streams", "Streams of changes that are open.", streams())
        requests = CounterMetricFamily(
            "pilotlight_dashboard_requests", "Requests of browsers that were answered.", labels=("kind", "status")
        )
        for (kind, status), count in self.requests.items():
            requests.add_metric((kind, status), count)
        yield requests
        text = "What gateways were asked, by what came of it."
        yield counter_by("pilotlight_dashboard_asked", text, "outcome", self.asked)
        yield histogram(
            "pilotlight_dashboard_page_seconds", "From the request of a page to the whole of it.", self.pages
        )


class CountedApi:
    """A `GatewayApi` whose answers are counted."""

    def __init__(self, api: GatewayApi, counts: DashboardCounts) -> None:
        self._api = api
        self._counts = counts

    async def ask(self, method: str, path: str, token: str = "", body: Any = None) -> ApiAnswer:
        """As the other one's."""
        try:
            answer = await self._api.ask(method, path, token, body)
        except ApiProblem:
            self._counts.asked["unanswered"] += 1
            raise
        outcome = "answered" if answer.status < 400 else "refused" if answer.status < 500 else "failed"
        self._counts.asked[outcome] += 1
        return answer


def kind_of(path: str, method: str) -> str:
    """Of which kind a request is."""
    if path.startswith("/ui/static/"):
        return "file"
    if path in ("/ui/login", "/ui/logout"):
        return "login"
    if path == "/ui/events":
        return "stream"
    if not path.startswith("/ui/"):
        return "other"
    return "action" if method == "POST" else "page"
