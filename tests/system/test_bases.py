"""Functions in other base environments, and with limits of their own, on a whole platform."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.base_venv import base_venv
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.waiting import wait_until

LOOK = """\
import importlib.util

from pilotlight import App

app = App({name})


@app.gpu_function({options})
def look() -> str:
    found = importlib.util.find_spec("flavour")
    return found.loader.load_module("flavour").NAME if found else ""
"""


@pytest.fixture(scope="module")
def sweet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A node with another base environment, and low ceilings."""
    folder = tmp_path_factory.mktemp("bases")
    venv = base_venv(folder / "venv", flavour="NAME = 'vanilla'")
    env = {"PILOTLIGHT_MOST_SHM": "64", "PILOTLIGHT_PREIMPORT": "none"}
    with run_platform(folder, "--cpu-slots", "2", "--blanks", "1", "--base", f"sweet={venv}", env=env) as running:
        yield running


def app(folder: Path, name: str, options: str = "") -> Path:
    path = folder / "app.py"
    path.write_text(LOOK.format(name=name, options=options))
    return path


def test_a_function_runs_in_the_base_environment_of_its_app(sweet: Platform, tmp_path: Path) -> None:
    """From a blank of that one; each has its own, and the node says which there are."""
    wait_until(lambda: sweet.blanks() == 2, "each has its blank")
    (node,) = sweet.http.get("/v1/nodes").json()["nodes"]
    assert node["bases"] == ["default", "sweet"]
    assert node["blanks"] == {"default": 1, "sweet": 1}

    sweet.deploy(app(tmp_path, '"plain"'))
    sweet.deploy(app(tmp_path, '"cone", base="sweet"'))

    assert sweet.output("plain.look") == ""
    assert sweet.output("cone.look") == "vanilla"
    assert "blank" in sweet.container_of("cone", "look")["timeline"]
    assert "vanilla" in sweet.cli("run", f"{tmp_path / 'app.py'}::look").stdout


def test_a_base_environment_that_no_node_has_is_refused_at_deploy(sweet: Platform, tmp_path: Path) -> None:
    """With the list of those there are."""
    refused = sweet.refusal(app(tmp_path, '"sour", base="lemon"'))

    assert "look can never run here" in refused
    assert "there is no base environment lemon; there is default, sweet" in " ".join(refused.split())


def test_more_than_the_platforms_ceiling_is_refused_at_deploy(sweet: Platform, tmp_path: Path) -> None:
    """By the name of the option."""
    refused = sweet.refusal(app(tmp_path, '"large"', 'shm="65MiB"'))

    assert "2 on nodes that allow less than 65 MiB of /dev/shm (shm=)" in " ".join(refused.split())
    sweet.deploy(app(tmp_path, '"large"', 'shm="64MiB"'))
    assert sweet.output("large.look") == ""
