"""What tests of commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sdk.scripted import ScriptedPlatform, answer

CODE = """
from pilotlight import App, gpu_function
app = App("hello")
@app.gpu_function
def greet(name: str = "world") -> str: return name
@gpu_function(app="second")
def two(number: int) -> int: return number
"""


@pytest.fixture
def folder(platform: ScriptedPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an app, and a platform that takes it."""
    for name, function in (("hello", "greet"), ("second", "two")):
        deployed = {
            "name": function, "version": f"{name}.{function}@v3", "version_id": "ver_1", "changed": name == "hello",
            "endpoint": f"/v1/functions/{name}.{function}/calls",
        }  # fmt: skip
        platform.will("POST", f"/v1/apps/{name}/deploys", answer({"app": name, "revision": 3, "functions": [deployed]}))
    place = tmp_path / "code"
    place.mkdir()
    (place / "app.py").write_text(CODE)
    monkeypatch.chdir(place)
    return place
