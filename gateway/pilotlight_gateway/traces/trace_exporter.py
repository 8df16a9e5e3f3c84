"""Sends kept calls to a collector, as traces over OTLP/HTTP: a duty, in one process at a time.

What gateways send waits in a bounded queue, of which the oldest go when the collector does not keep up. A request that
the collector could not take for the moment is repeated a few times; nothing else waits for it. What was dropped is
counted, and whatever happens here no call notices.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote, urlsplit

import structlog
from prometheus_client.core import Metric

from pilotlight_core.bus import Bus, Lease
from pilotlight_core.host.http_client import HttpClient, NoHttpClient
from pilotlight_core.host.metrics.metric_families import counter_by, gauge
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.scheduling import TraceBatch
from pilotlight_core.model.tracing.kept_call import KeptCall
from pilotlight_core.model.tracing.packed_calls import packed_group
from pilotlight_core.model.tracing.sampled_call import SampledSheet
from pilotlight_gateway.traces.otlp_encoding import rejected_spans, request_of
from pilotlight_gateway.traces.sampled_encoding import SpanForms
from pilotlight_gateway.traces.span_tree import AttributeValue

PATH = "/v1/traces"
MOST_WAITING = 8_192
"""Calls that wait for the collector."""
AT_ONCE, WHOLE = 512, 8
"""Calls of one request, but for the rest of its last sheet: about 700 kB, where collectors take some MB. A whole
one, of which more is told, counts as eight."""
GATHERED_S = 0.1
"""Requests are as large as they may be, since each costs as much as some hundred calls: what a gateway tells comes in
several messages."""
TRIES = 5
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
ANSWER_S = 10.0
AGAIN = frozenset({429, 502, 503, 504})
"""Statuses after which a request is repeated, as OTLP has it."""
SAID_EVERY = 100
"""Failures between two lines in the log."""

log = structlog.get_logger(__name__)

ToExport = KeptCall | SampledSheet


def calls_of(those: Iterable[ToExport]) -> int:
    """How many calls these are."""
    return sum([each.count if isinstance(each, SampledSheet) else 1 for each in those])


def endpoint_of(url: str) -> str:
    """Where traces are posted: the address of a collector, or of its path for traces.

    Raises:
        BadInput: it is no http(s) address.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"otlp_endpoint: expected http(s)://HOST:PORT of a collector, not {url[:100]!r}.")
    return url if parts.path.endswith(PATH) else url.rstrip("/") + PATH


def headers_of(text: str) -> dict[str, str]:
    """Headers as `name=value,name=value`, with values percent-encoded, as OpenTelemetry's variables have them.

    Raises:
        BadInput: a part has no name.
    """
    found: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, separator, value = part.partition("=")
        if not separator or not name.strip():
            raise BadInput("otlp_headers: expected name=value, and commas between several.")
        found[name.strip().lower()] = unquote(value.strip())
    return found


class TraceExporter:
    """Exports what gateways send until cancelled."""

    def __init__(self, bus: Bus, *, endpoint: str, headers: Mapping[str, str], region: str, ca_file: str = "") -> None:
        """`endpoint`, `headers`: as `endpoint_of` and `headers_of` read them."""
        self._bus = bus
        self._endpoint = endpoint
        self._headers = {**headers, "content-type": "application/x-protobuf"}
        self._region = region
        self._client = HttpClient(connections=1, ca_file=ca_file, timeout=ANSWER_S, follow_redirects=False)
        self._waiting: deque[ToExport] = deque()
        self._calls_waiting = 0
        self._forms = SpanForms()
        self._has_some = asyncio.Event()
        self._counts = Counter[str]()
        self._resource: dict[str, AttributeValue] = {"service.name": "pilotlight", "pilotlight.region": region}
        self._failures = 0

    async def aclose(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    def collect(self) -> Iterator[Metric]:
        """A `MetricSource`."""
        text = "Kept calls that were exported as traces, and those that were not: the collector refused them, or did "
        counts = {name: self._counts[name] for name in ("exported", "refused", "unreachable", "crowded")}
        yield counter_by("pilotlight_traces", f"{text}not answer, or too many waited for it.", "result", counts)
        yield gauge("pilotlight_traces_waiting", "Kept calls that wait to be exported.", self._calls_waiting)

    def take(self, batch: TraceBatch) -> None:
        """Export these calls, in their turn."""
        told: list[ToExport] = [*batch.calls, *batch.sheets, *map(packed_group, batch.sampled)]
        self._waiting.extend(told)
        self._calls_waiting += calls_of(told)
        while self._calls_waiting > MOST_WAITING:
            dropped = calls_of((self._waiting.popleft(),))
            self._calls_waiting -= dropped
            self._counts["crowded"] += dropped
        self._has_some.set()

    async def export_until_cancelled(self, _: Lease) -> None:
        """Export until cancelled. What two processes export for a moment is shown once: the ids are the same."""
        async with self._bus.listening({subjects.traces(self._region): self._on_batch}):
            while True:
                await self._has_some.wait()
                await asyncio.sleep(GATHERED_S)
                while self._waiting:
                    await self._export(self._next_calls())
                self._has_some.clear()

    def _next_calls(self) -> list[ToExport]:
        """Those of the next request."""
        taken: list[ToExport] = []
        room = AT_ONCE
        while self._waiting and room > 0:
            first = self._waiting.popleft()
            room -= first.count if isinstance(first, SampledSheet) else WHOLE
            taken.append(first)
        self._calls_waiting -= calls_of(taken)
        return taken

    def _on_batch(self, _: str, message: object, __: str) -> None:
        if isinstance(message, TraceBatch):
            self.take(message)

    async def _export(self, calls: list[ToExport]) -> None:
        body = await asyncio.to_thread(self._body_of, calls)
        result = "unreachable"
        for number in range(TRIES):
            if number:
                pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (number - 1))
                await asyncio.sleep(pause_s * (0.5 + random.random() / 2))
            result, again = await self._post(body)
            if not again:
                break
        self._counts[result] += calls_of(calls)

    async def _post(self, body: bytes) -> tuple[str, bool]:
        """What became of a request, and whether to repeat it."""
        import httpx  # as `HttpClient` does: it is large, and most duties have no collector

        try:
            client = await self._client.get()
            answer = await client.post(self._endpoint, content=body, headers=self._headers)
        except (httpx.HTTPError, NoHttpClient, OSError) as error:
            self._log_trouble("the collector does not answer", error=type(error).__name__)
            return "unreachable", True
        if answer.status_code in AGAIN:
            self._log_trouble("the collector takes no traces now", status=answer.status_code)
            return "unreachable", True
        if answer.status_code >= 300:
            self._log_trouble("the collector refuses traces", status=answer.status_code)
            return "refused", False
        if rejected := rejected_spans(answer.content):
            self._log_trouble("the collector has not taken all spans", rejected=rejected)
        return "exported", False

    def _body_of(self, calls: list[ToExport]) -> bytes:
        return request_of(self._forms.messages(calls), self._resource)

    def _log_trouble(self, what: str, **more: object) -> None:
        if self._failures % SAID_EVERY == 0:
            log.warning(what, endpoint=self._endpoint, **more)
        self._failures += 1
