"""One platform for all tests that do not kill its parts, and those who use it."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import httpx
import pytest

import pilotlight
from tests.builders.package_index import package_index
from tests.builders.wheels import wheel
from tests.system.support.platform import Platform, make_tenant
from tests.system.support.platform import platform as run_platform
from tests.system.support.sample_apps import APPS
from tests.system.support.trace_collector import TraceCollector, trace_collector

HERE = Path(__file__).parent
#: Of tests that kill at random: `SEED=n` repeats a run.
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(10**6))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs the whole platform."""
    for item in items:
        if _is_here(item.path):
            item.add_marker(pytest.mark.system)


@cache
def _is_here(file: Path) -> bool:
    return HERE in file.parents


@pytest.fixture(scope="package")
def collector() -> Iterator[TraceCollector]:
    """The collector of the platform's traces."""
    with trace_collector() as running:
        yield running


@pytest.fixture(scope="package")
def platform(tmp_path_factory: pytest.TempPathFactory, collector: TraceCollector) -> Iterator[Platform]:
    """A node of four slots with one blank, and a package index, started as an operator does."""
    folder = tmp_path_factory.mktemp("platform")
    greeting = wheel("greeting", files={"greeting.py": "def text():\n    return 'hello!'\n"})
    with (
        package_index(greeting) as index,
        run_platform(
            folder,
            "--cpu-slots",
            "4",
            "--blanks",
            "1",
            "--package-index",
            index.url,
            "--otlp-endpoint",
            collector.url,
            executed=True,
        ) as running,
    ):
        yield running


@pytest.fixture(scope="package")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One with two gateways, for the files that need no more; whoever kills one waits until it is back."""
    folder = tmp_path_factory.mktemp("pair")
    with run_platform(folder, "--extra-gateways", "1", "--cpu-slots", "4", "--blanks", "0") as running:
        running.deploy(APPS / "calls" / "app.py")
        running.deploy(APPS / "crash" / "app.py")
        yield running


@pytest.fixture(scope="package")
def client(platform: Platform) -> Iterator[pilotlight.Client]:
    """The SDK's client of the platform."""
    with pilotlight.Client(url=platform.url, api_key=platform.key) as client:
        yield client


@pytest.fixture(scope="package")
def stranger_key(platform: Platform) -> str:
    """A key of another tenant, for everything in it."""
    return make_tenant(platform, "stranger")


@pytest.fixture(scope="package")
def stranger(platform: Platform, stranger_key: str) -> Iterator[httpx.Client]:
    """A client of that tenant."""
    with platform.as_holder_of(stranger_key) as client:
        yield client


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Everything random of a test, from the seed and its name."""
    print(f"SEED={SEED}")
    return random.Random(f"{SEED} {request.node.name}")
