"""An idle process has loaded what it needs for every call, and nothing else of size."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = "import json, sys, {module}; print(json.dumps(list(sys.modules)))"
HEAVY = {
    "sqlalchemy", "alembic", "cryptography", "jsonschema_rs", "httpx", "httpcore", "pynvml", "rich", "trio", "boto3",
    "numpy", "torch", "starlette", "uvicorn", "pilotlight_placement", "joserfc",
}  # fmt: skip
"""Some megabytes each."""


@pytest.mark.parametrize(
    ("module", "needed"),
    [
        ("pilotlight_gateway.__main__", {"starlette", "uvicorn", "pilotlight_placement"}),
        ("pilotlight_runtime.__main__", set()),
        ("pilotlight_autoscaler.__main__", {"pilotlight_placement"}),
        ("pilotlight_gateway.duties.__main__", {"sqlalchemy", "httpcore"}),
    ],
)
def test_a_process_loads_what_it_needs(module: str, needed: set[str]) -> None:
    """The rest is loaded with the first request, manifest or transfer that needs it."""
    command = [sys.executable, "-c", PROGRAM.format(module=module)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert set(json.loads(said)) & HEAVY == needed
