"""Logs, the same in every process: events with fields, to stderr, as JSON lines or as coloured text on a terminal.

They never contain payloads, and `redact` removes what looks like a credential. Logs of libraries are handled alike.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

SECRET = re.compile(
    r"\bpl_live_[A-Za-z0-9]+_[A-Za-z0-9]+"
    r"|(?i:\b(bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}"
    r"|(?<=://)[^\s/@]+(?=@)"  # credentials in a URL
)
SECRET_NAMES = frozenset({"authorization", "api_key", "apikey", "secret", "password", "cookie", "x-api-key"})
STRUCK = "[struck out]"
LONGEST = 4000
"""Characters of one field; longer ones are cut."""
MAX_DEPTH = 6
NO_NEWS = "returning true from eof_received() has no effect when using ssl"
"""What asyncio warns of wherever nats-py's connection ends under TLS: ten times a second of a node that is let in no
more."""

LogEvent = MutableMapping[str, Any]


def setup(process: str, *, level: int = logging.INFO, console: bool | None = None) -> None:
    """Send all logs of this process to stderr, each with `process`; as JSON unless stderr is a terminal."""
    pretty = sys.stderr.isatty() if console is None else console
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,  # plain text before redaction: pretty ones show local variables
        redact,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=False,
    )
    last: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if pretty
        else structlog.processors.JSONRenderer()
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
    asyncio_log = logging.getLogger("asyncio")
    asyncio_log.removeFilter(_is_news)  # of an earlier call
    asyncio_log.addFilter(_is_news)
    root.setLevel(level)
    structlog.contextvars.bind_contextvars(process=process)


def _is_news(record: logging.LogRecord) -> bool:
    return record.msg != NO_NEWS


def redact(_logger: Any, _method: str, event: LogEvent) -> LogEvent:
    """The processor that removes credentials and cuts long fields."""
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
