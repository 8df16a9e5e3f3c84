"""The apps that are deployed on a running platform: those made for tests, and the examples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.system.support.platform import ROOT, Platform

APPS = ROOT / "tests" / "system" / "apps"
EXAMPLES = ROOT / "examples"


@contextmanager
def deployed(platform: Platform, path: Path) -> Iterator[str]:
    """What deploying an app printed; stopped at the end, so that the tests of the next file find all slots free."""
    yield platform.deploy(path)
    stopped = platform.http.post(f"/v1/apps/{path.parent.name}/stop")
    assert stopped.is_success, stopped.text
