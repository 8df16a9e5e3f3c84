"""Logs without secrets or payloads."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from pilotlight_core.host import telemetry


@pytest.fixture
def restored() -> Iterator[None]:
    """Logging as it was before."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.mark.usefixtures("restored")
def test_a_line_is_json_with_its_process(capsys: pytest.CaptureFixture[str]) -> None:
    """The platform's and other libraries' logs have one format."""
    telemetry.setup("gateway", console=False)
    structlog.get_logger("x").info("hello", n=1)
    logging.getLogger("library").warning("from %s", "elsewhere")

    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]

    assert [(line["event"], line["level"], line["process"]) for line in lines] == [
        ("hello", "info", "gateway"), ("from elsewhere", "warning", "gateway"),
    ]  # fmt: skip


@pytest.mark.usefixtures("restored")
def test_what_every_end_of_tls_says_is_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    """asyncio's other warnings are."""
    telemetry.setup("agent", console=False)
    logging.getLogger("asyncio").warning(telemetry.NO_NEWS)
    logging.getLogger("asyncio").warning("something else")

    assert [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()] == ["something else"]


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("console", [True, False])
def test_secrets_never_reach_a_line(capsys: pytest.CaptureFixture[str], console: bool) -> None:
    """Not in the event, a field, a nested field, or a traceback; as JSON or on a terminal."""
    telemetry.setup("gateway", console=console)
    log = structlog.get_logger("x")
    key = "pl_live_abc123_SECRETSECRETSECRETdeadbeef"
    try:
        raise ValueError(f"bad key {key}")
    except ValueError:
        log.exception(f"key {key}", url=f"https://x/?k={key}", headers={"Authorization": f"Bearer {key}"}, secret="s3")
    log.info("request", header="Bearer abcdefgh12345678", items=[{"api_key": "k"}])
    log.info("bus", servers=["nats://SECRET@127.0.0.1:4222"], ledger="postgresql://me:SECRET@db/ledger")

    text = capsys.readouterr().err

    assert "SECRET" not in text
    assert "abcdefgh12345678" not in text
    assert "s3" not in text
    assert "'k'" not in text
    assert '"k"' not in text
    assert "ValueError" in text


def test_payloads_and_long_texts_are_cut() -> None:
    """Bytes become their number; a field has its limit; nesting ends."""
    deep: Any = "end"
    for _ in range(20):
        deep = [deep]

    event = telemetry.redact(None, "info", {"body": b"x" * 5000, "text": "y" * 9000, "deep": deep})

    assert event["body"] == "<5000 bytes>"
    assert event["text"].endswith("… (9000 characters)")
    assert len(event["text"]) < 4100
    assert "…" in str(event["deep"])
