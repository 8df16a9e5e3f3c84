"""A collector of traces: an HTTP server that reads OTLP with OpenTelemetry's own classes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, kw_only=True)
class CollectedSpan:
    """A span as a collector has it."""

    trace_id: str
    span_id: str
    parent: str
    name: str
    begin_ns: int
    end_ns: int
    attributes: dict[str, Any]
    links: tuple[str, ...]
    """Trace ids."""
    trace_state: str = ""

    @property
    def ms(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e6


@dataclass(kw_only=True)
class TraceCollector:
    """What came to `url`, in any order."""

    url: str = ""
    spans: list[CollectedSpan] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    """Of each request."""
    statuses: list[int] = field(default_factory=list)
    """What the next requests are answered; their spans are not taken."""

    def root_of(self, call_id: str) -> CollectedSpan | None:
        """The root span of a call."""
        found = (span for span in self.spans if span.attributes.get("faas.invocation_id") == call_id)
        return next(found, None)

    def below(self, parent: CollectedSpan) -> list[CollectedSpan]:
        """The children of a span, in their order."""
        found = {span.span_id: span for span in self.spans if span.parent == parent.span_id}
        return sorted(found.values(), key=lambda span: span.begin_ns)

    def take(self, body: bytes) -> None:
        """Keep the spans of a request."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.spans += [_span(one) for one in scope.spans]


def _span(one: Any) -> CollectedSpan:
    return CollectedSpan(
        trace_id=one.trace_id.hex(),
        span_id=one.span_id.hex(),
        parent=one.parent_span_id.hex(),
        name=one.name,
        begin_ns=one.start_time_unix_nano,
        end_ns=one.end_time_unix_nano,
        attributes={each.key: getattr(each.value, each.value.WhichOneof("value")) for each in one.attributes},
        links=tuple(link.trace_id.hex() for link in one.links),
        trace_state=one.trace_state,
    )


@contextmanager
def trace_collector() -> Iterator[TraceCollector]:
    """One on loopback, until the block ends."""
    made = TraceCollector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            made.headers.append({name.lower(): value for name, value in self.headers.items()})
            known = self.path == "/v1/traces" and self.headers["content-type"] == "application/x-protobuf"
            status = made.statuses.pop(0) if made.statuses else 200 if known else 415
            if status == 200:
                made.take(body)
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
