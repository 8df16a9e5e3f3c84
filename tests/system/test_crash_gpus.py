"""The agent is killed in the middle of cutting a GPU; the GPUs exist in software, everything else is real."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.system.support.ledger import check_devices_are_accounted_whole, check_no_instant_is_sold_twice, rows
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(120)]
SOURCE = """\
import pilotlight

app = pilotlight.App("cut")


@app.gpu_function(gpu="H100", vram="8GiB", memory="256MiB", scaledown_window=2, forecast=False)
def small(text: str) -> str:
    return text.upper()


@app.gpu_function(gpu="H100", vram="60GiB", memory="256MiB", scaledown_window=2, forecast=False)
def large(text: str) -> str:
    return text.lower()
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A node with one GPU, in MIG mode."""
    folder = tmp_path_factory.mktemp("crash_gpus")
    options = ("--cpu-slots", "1", "--blanks", "1", "--fake-gpus", "1xH100:mig")
    with run_platform(folder, *options) as running:
        source = folder / "app" / "app.py"
        source.parent.mkdir()
        source.write_text(SOURCE)
        running.deploy(source)
        yield running


def instances(platform: Platform) -> list[dict[str, Any]]:
    """As the driver would have them: a half is one without its compute instance."""
    path: Path = platform.state / "node" / "local" / "fake_gpus.json"
    if not path.exists():
        return []
    (gpu,) = json.loads(path.read_text())["gpus"].values()
    found: list[dict[str, Any]] = gpu["instances"]
    return found


def half(platform: Platform) -> bool:
    return any(not one["compute"] for one in instances(platform))


def places(platform: Platform) -> set[str]:
    return {f"{one['profile']}@{one['start']}" for one in instances(platform)}


@pytest.mark.parametrize("function", ["small", pytest.param("large", marks=pytest.mark.variant)])
def test_an_agent_killed_while_it_cuts_leaves_nothing_half(platform: Platform, function: str) -> None:
    """While it makes the first instance, then while it destroys that for a larger one: calls are answered all the same.

    The driver shows no half any more, the container is on an instance that is there, and what was metered of the GPU
    is all of it at each instant, once.
    """
    before = platform.pids["agent"]
    if function == "large":
        wait_until(lambda: not platform.containers("cut"), "the small one has gone", 30.0)
    was = places(platform)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(platform.call, f"cut.{function}", text="Ab")
        # A half is there for a twentieth of a second; on a busy machine the whole may be seen first.
        wait_until(lambda: half(platform) or places(platform) != was, "the GPU is being cut", 30.0)
        platform.kill("agent")
        assert answer.result(60).json()["output"] == ("AB" if function == "small" else "ab")
    assert platform.pids["agent"] != before

    container = platform.container_of("cut", function)
    assert not half(platform)
    assert container["slice"].rpartition(":")[2] in places(platform)
    check_books(platform, container["id"])


def check_books(platform: Platform, container: str) -> None:
    """Once the container is in the ledger."""
    billed: Callable[[], Any] = lambda: rows(platform, "SELECT 1 FROM lease_line WHERE container = ?", container)  # noqa: E731
    wait_until(billed, "its container is in the ledger")
    check_no_instant_is_sold_twice(platform)
    check_devices_are_accounted_whole(platform, "fake-h100")


@pytest.mark.variant
def test_a_controller_killed_in_the_middle_of_a_plan_leaves_nothing_to_its_successor(platform: Platform) -> None:
    """Killed while the GPU is cut for a container that waits for that: the next one begins anew from what there is.

    The call is answered, there is one container, and no instance that nobody uses is in anybody's way.
    """
    before = platform.pids["controller"]
    wait_until(lambda: not platform.containers("cut"), "nothing runs", 30.0)
    was = places(platform)
    function = "small" if "7g@0" in was else "large"
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(platform.call, f"cut.{function}", text="Ab")
        wait_until(lambda: half(platform) or places(platform) != was, "the GPU is being cut", 30.0)
        platform.kill("controller")
        assert answer.result(60).json()["output"] == ("AB" if function == "small" else "ab")
    assert platform.pids["controller"] != before

    container = platform.container_of("cut", function)
    assert container["slice"].rpartition(":")[2] in places(platform)
    check_books(platform, container["id"])
