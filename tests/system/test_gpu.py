"""Functions on a real GPU, through the whole platform: `pytest -m gpu` on a node with a driver, bubblewrap and a torch
that was built for CUDA."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pynvml
import pytest

import pilotlight
from pilotlight_core.model.units import WHOLE_DEVICE
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.processes import descendants
from tests.system.support.sample_apps import APPS, EXAMPLES
from tests.waiting import wait_until

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]
START_S = 120.0
"""A first start imports torch and opens the GPU."""
CUDA_CONTEXT = 100 * 2**20
"""Less than any program takes of a GPU once it computes on it."""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One that leaves the GPUs of this machine as they are: in their mode, and as they are cut."""
    with run_platform(tmp_path_factory.mktemp("gpu"), env={"PILOTLIGHT_CUT_GPUS": "no"}, executed=True) as running:
        yield running


@pytest.fixture(scope="module")
def client(platform: Platform) -> Iterator[pilotlight.Client]:
    """The SDK's client of that platform."""
    with pilotlight.Client(url=platform.url, api_key=platform.key) as client:
        yield client


@pytest.fixture(scope="module")
def gpus(platform: Platform) -> dict[str, dict[str, Any]]:
    """The GPUs that the node offers, by their ids: as soon as they have been tried."""

    def offered() -> dict[str, dict[str, Any]]:
        nodes = platform.http.get("/v1/nodes").json()["nodes"]
        return {part["id"]: part for node in nodes for part in node["slices"] if part["kind"] == "gpu"}

    return wait_until(offered, "the node offers its GPUs", START_S)


@pytest.fixture(scope="module")
def seen(platform: Platform, gpus: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The whole answer of a function that looks at its GPU."""
    platform.deploy(APPS / "gpu" / "app.py")
    answer = platform.call("gpu.looks", timeout=START_S)
    assert answer.status_code == 200, answer.text
    whole: dict[str, Any] = answer.json()
    return whole


def memory_used(uuid: str) -> int:
    """Bytes that programs use of a GPU."""
    return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByUUID(uuid), pynvml.nvmlMemory_v2).used)


@pytest.fixture(scope="module", autouse=True)
def _driver() -> Iterator[None]:
    pynvml.nvmlInit()
    yield
    pynvml.nvmlShutdown()


def test_the_node_offers_what_the_driver_shows(gpus: dict[str, dict[str, Any]]) -> None:
    """Every GPU that is not in MIG mode, whole."""
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    uuids = {pynvml.nvmlDeviceGetUUID(handle) for handle in handles}

    assert gpus
    assert gpus.keys() <= uuids
    assert all(part["ppm"] == WHOLE_DEVICE and part["device"] == part["id"] for part in gpus.values())


def test_a_blank_waits_on_a_free_gpu_and_has_not_opened_it(platform: Platform, gpus: dict[str, dict[str, Any]]) -> None:
    """It has imported torch, and the driver lists no process of this platform."""

    def has_blank() -> bool:
        nodes = platform.http.get("/v1/nodes").json()["nodes"]
        return any(part["blank"] for node in nodes for part in node["slices"] if part["id"] in gpus)

    wait_until(has_blank, "a GPU has a blank", START_S)

    handles = [pynvml.nvmlDeviceGetHandleByUUID(gpu) for gpu in gpus]
    computing = {each.pid for handle in handles for each in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)}
    assert not computing & set(descendants(platform.process.pid))


def test_torch_sees_exactly_the_gpu_of_its_container(gpus: dict[str, dict[str, Any]], seen: dict[str, Any]) -> None:
    """One, the one it was given, and it computes; no other GPU's node is there."""
    output = seen["output"]

    assert output["count"] == 1
    assert output["uuid"] == output["visible"]
    assert output["uuid"] in gpus
    assert output["product"] == 512.0**3
    assert len([name for name in output["nodes"] if name.removeprefix("nvidia").isdigit()]) == 1


def test_its_time_is_the_gpus(gpus: dict[str, dict[str, Any]], seen: dict[str, Any]) -> None:
    """At the price of the product, for the whole of it."""
    part = gpus[seen["output"]["uuid"]]

    assert seen["usage"]["price"] == part["price"]
    assert seen["usage"]["ppm"] == WHOLE_DEVICE
    assert seen["usage"]["ns"] > 0


def test_its_gpu_is_free_again_when_it_is_gone(platform: Platform, seen: dict[str, Any]) -> None:
    """Scaled to zero, it leaves the slice to the next."""
    wait_until(lambda: not platform.containers("gpu"), "the container is gone", 60.0)
    nodes = platform.http.get("/v1/nodes").json()["nodes"]

    assert not any(part["container"] for node in nodes for part in node["slices"] if part["kind"] == "gpu")


def test_embeddings_on_a_gpu_equal_the_reference(
    platform: Platform, client: pilotlight.Client, gpus: dict[str, dict[str, Any]]
) -> None:
    """The same vectors as on a CPU, from a container that prefers a GPU, got one, and has its weights on it."""
    platform.deploy(EXAMPLES / "embeddings" / "app.py")
    rows = json.loads((EXAMPLES / "embeddings" / "reference.json").read_text())["texts"]
    embed: Any = pilotlight.Function.from_name("embeddings", "MiniLM", method="embed").options(client=client)

    vectors = list(embed.map([row["text"] for row in rows]))

    for row, vector in zip(rows, vectors, strict=True):
        assert max(abs(a - b) for a, b in zip(row["vector"], vector, strict=True)) < 1e-4
    slices = {container["slice"] for container in platform.containers("embeddings")}
    assert any(memory_used(slice_id) > CUDA_CONTEXT for slice_id in slices & gpus.keys())
