"""Calls against the function's own document, by somebody else's judge: schemathesis, on a platform that runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.support.platform import Platform
from tests.system.support.sample_apps import APPS, deployed

CONFIG = """
# A deadline that a schema can have may be too short for any call, and an id may be taken.
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "408", "409"]
"""
# A schema cannot say that whole numbers have 64 bits wherever anything may stand: those beyond are refused (422).
HOOKS = """
import schemathesis

@schemathesis.hook
def filter_body(context, body):
    return all(-2**63 <= number < 2**64 for number in whole_numbers(body))

def whole_numbers(value):
    if isinstance(value, int):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from whole_numbers(inner)
"""
pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


@pytest.mark.variant
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--phases", "examples,coverage"), id="the edges of its schema"),
        pytest.param(("--phases", "fuzzing", "--max-examples", "300"), id="anything", marks=pytest.mark.long),
    ],
)
def test_a_function_answers_as_its_document_says(platform: Platform, tmp_path: Path, options: tuple[str, ...]) -> None:
    """What its schema takes is run and answered in its shape; what it does not take is refused; nothing is a 5xx."""
    with deployed(platform, APPS / "judged" / "app.py"):
        platform.output("judged.bill", orders=[{"item": "lamp"}])
        document = platform.http.get("/v1/functions/judged.bill/openapi.json")
        (tmp_path / "bill.json").write_bytes(document.content)
        (tmp_path / "schemathesis.toml").write_text(CONFIG)
        (tmp_path / "hooks.py").write_text(HOOKS)
        judged = subprocess.run(
            [
                sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run", "bill.json",
                "--url", platform.url, "--header", f"Authorization: Bearer {platform.key}", "--checks", "all",
                "--seed", "1", "--no-color", "--no-shrink", "--report", "ndjson",
                "--report-ndjson-path", "report.ndjson", *options,
            ],
            cwd=tmp_path, env={**os.environ, "SCHEMATHESIS_HOOKS": "hooks"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    if judged.returncode:
        pytest.fail(judged.stdout + judged.stderr, pytrace=False)
    statuses = answered(tmp_path / "report.ndjson")
    assert statuses.keys() >= {200, 422}, statuses
    assert not {status for status in statuses if status >= 500}, statuses


def answered(report: Path) -> dict[int, int]:
    """How often each status was answered, as the judge's report says."""
    found: dict[int, int] = {}

    def look(value: object) -> None:
        if isinstance(value, dict):
            if isinstance(status := value.get("status_code"), int):
                found[status] = found.get(status, 0) + 1
            for inner in value.values():
                look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)

    for line in report.read_text().splitlines():
        look(json.loads(line))
    return found
