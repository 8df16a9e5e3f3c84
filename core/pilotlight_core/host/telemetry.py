"""Logs and metrics, alike in every process.

Logs are events with fields, to stderr: JSON lines, or coloured text on a terminal. They never hold payloads, and what
looks like a credential is struck out wherever it stands. Other libraries' logging takes the same way out.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, generate_latest

SECRET = re.compile(r"\bpl_live_[A-Za-z0-9]+_[A-Za-z0-9]+|(?i:\b(bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}")
SECRET_NAMES = frozenset({"authorization", "api_key", "apikey", "secret", "password", "cookie", "x-api-key"})
STRUCK = "[struck out]"
LONGEST = 4000
"""Characters of one field; the rest of a longer one is cut."""
MAX_DEPTH = 6
OTHER = "other"

Event = MutableMapping[str, Any]


def setup(process: str, *, level: int = logging.INFO, console: bool | None = None) -> None:
    """Send all logs of this process to stderr, each with `process`; as JSON unless stderr is a terminal."""
    pretty = sys.stderr.isatty() if console is None else console
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        *([] if pretty else [structlog.processors.format_exc_info]),
        redact,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=False,
    )
    last: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback) if pretty else structlog.processors.JSONRenderer()
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    structlog.contextvars.bind_contextvars(process=process)


def redact(_logger: Any, _method: str, event: Event) -> Event:
    """The processor that strikes out credentials and cuts what is too long."""
    return {name: STRUCK if name.lower() in SECRET_NAMES else _clean(value, 0) for name, value in event.items()}


def _clean(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        text = SECRET.sub(STRUCK, value)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if depth >= MAX_DEPTH:
        return "…"
    if isinstance(value, dict):
        return {
            key: STRUCK if str(key).lower() in SECRET_NAMES else _clean(item, depth + 1) for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(item, depth + 1) for item in value]
    return value


class Bounded:
    """Label values, kept to the first `limit` that appear; later ones are "other".

    A label that callers choose would otherwise make a time series for each value, for ever.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def __call__(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= self._limit:
            return OTHER
        self._known.add(value)
        return value

    def __len__(self) -> int:
        return len(self._known)


class Metrics:
    """One process's metrics: make them with `registry=metrics.registry`, and serve `render()`."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._labels: dict[str, Bounded] = {}

    def bounded(self, label: str, limit: int = 100) -> Bounded:
        """The guard of one label; the same for all who ask for that label."""
        return self._labels.setdefault(label, Bounded(limit))

    def render(self) -> bytes:
        """The Prometheus text of everything registered."""
        return generate_latest(self.registry)
