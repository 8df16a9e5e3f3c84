"""What tests of the SDK share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sdk.scripted import KEY, ScriptedPlatform, serving


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def _server() -> Iterator[ScriptedPlatform]:
    with serving(ScriptedPlatform()) as platform:
        yield platform


@pytest.fixture
def platform(_server: ScriptedPlatform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ScriptedPlatform:
    """A platform without a script yet, configured through the environment."""
    _server.__dict__.update(ScriptedPlatform().__dict__ | {"url": _server.url})
    monkeypatch.setenv("PILOTLIGHT_URL", _server.url)
    monkeypatch.setenv("PILOTLIGHT_API_KEY", KEY)
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path / "home"))
    return _server
