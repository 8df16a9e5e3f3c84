"""Host memory and cores on a real node: promised once, kept to by the kernel, and the platform outlives what is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotlight_runtime.devices.cpu_slots import memory_bytes, usable_cores
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.processes import descendants
from tests.waiting import wait_until

MIB = 2**20
ROOM_MIB = 1100
"""What the node has to promise: two functions of 400 MiB, and not three."""
SLOTS = 8
SOURCE = """\
import pilotlight

app = pilotlight.App("rooms")


@app.gpu_function(memory="400MiB", min_containers=5, scaledown_window=60)
def roomy(text: str = "") -> str:
    return text


@app.gpu_function(memory="100MiB", scaledown_window=60)
def small(text: str = "") -> str:
    return text
"""
CORES = """\
import pilotlight

app = pilotlight.App("cores")


@app.gpu_function(memory="64MiB", cpu={each}, min_containers=8, scaledown_window=60)
def busy(text: str = "") -> str:
    return text
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A node of eight slots whose platform keeps all of the memory but ROOM_MIB."""
    reserve = memory_bytes() // MIB - ROOM_MIB
    env = {"PILOTLIGHT_RESERVE_MEMORY": str(reserve)}
    folder = tmp_path_factory.mktemp("rooms")
    with run_platform(folder, "--cpu-slots", str(SLOTS), "--blanks", "0", env=env) as running:
        yield running


@pytest.fixture
def rooms(node: Platform, tmp_path: Path) -> Iterator[Platform]:
    """The app with a floor of five, of which two fit."""
    path = tmp_path / "rooms.py"
    path.write_text(SOURCE)
    node.deploy(path)
    yield node
    node.cli("app", "stop", "rooms")
    wait_until(lambda: not node.containers("rooms"), "its containers are gone")


def ready(platform: Platform, app: str) -> list[str]:
    return [each["id"] for each in platform.containers(app) if each["state"] == "ready"]


def host(platform: Platform) -> dict[str, float]:
    (told,) = platform.http.get("/v1/fleet").json()["hosts"]
    return dict(told)


def test_memory_is_promised_once(rooms: Platform) -> None:
    """Slots are free, memory is not: the others wait, are told why, and what still fits runs beside them."""
    wait_until(lambda: len(ready(rooms, "rooms")) == 2, "two are ready")
    assert rooms.output("rooms.small", text="there is room for it") == "there is room for it"

    assert len([each for each in rooms.containers("rooms") if each["function"] == "roomy"]) == 2
    told = host(rooms)
    assert told["memory"] < (ROOM_MIB + 1) * MIB
    wait_until(lambda: host(rooms)["memory_promised"] == (400 + 400 + 100) * MIB, "the node reports its promises")
    explained = rooms.cli("placement", "explain", "rooms.roomy").stdout
    assert "on hosts whose memory is promised to other containers" in explained
    assert "GiB of host memory promised" in rooms.cli("fleet").stdout


def test_containers_go_before_the_platform_when_the_kernel_runs_out_of_memory(rooms: Platform) -> None:
    """Every process of them; none of the platform's."""
    wait_until(lambda: len(ready(rooms, "rooms")) == 2, "two are ready")
    agent = rooms.pids["agent"]
    inside = descendants(agent)

    assert len(inside) >= 2 * 2
    assert {score(pid) for pid in inside} == {1000}
    assert {score(pid) for pid in rooms.pids.values()} == {0}


def score(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def test_cores_are_promised_once(node: Platform, tmp_path: Path) -> None:
    """Of eight containers of half of the cores each two run."""
    path = tmp_path / "cores.py"
    path.write_text(CORES.format(each=usable_cores() / 2))
    node.deploy(path)
    wait_until(lambda: len(ready(node, "cores")) == 2, "two are ready")

    wait_until(lambda: host(node)["cores_promised"] == usable_cores(), "the node reports its promises")
    assert host(node)["cores"] == usable_cores()
    explained = node.cli("placement", "explain", "cores.busy").stdout
    assert "on hosts whose cores are promised to other containers" in explained
    node.cli("app", "stop", "cores")
    wait_until(lambda: not node.containers("cores"), "its containers are gone")


@pytest.mark.parametrize(("option", "value"), [("cpu", "256"), ("memory", '"2000GiB"')])
def test_what_no_host_has_is_refused_at_deploy(node: Platform, tmp_path: Path, option: str, value: str) -> None:
    """By the option, with what there is."""
    path = tmp_path / "never.py"
    path.write_text(SOURCE.replace('memory="400MiB", min_containers=5', f"{option}={value}"))

    def refused() -> str:
        done = node.cli("deploy", str(path), check=False)
        return done.stderr if done.returncode else ""

    told = wait_until(refused, "the fleet is known for long enough to refuse")

    assert "can never run here" in told
    assert f"for containers ({option}=)" in told
