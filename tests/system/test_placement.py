"""Where containers are and why, as an operator asks for it; and what its tenant learns of its own function."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.support.platform import Platform
from tests.waiting import wait_until

SOURCE = """\
import pilotlight

app = pilotlight.App("placed")


@app.gpu_function(memory="256MiB", spread="node", weights="none-really", scaledown_window=300)
def here() -> str:
    return "here"
"""
LARGE = """\
import pilotlight

app = pilotlight.App("large")


@app.gpu_function(gpu="H100", model=pilotlight.Model(parameters=70e9))
def never() -> str:
    return "never"
"""


@pytest.fixture(scope="module")
def container(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A container that was started for a call."""
    source = tmp_path_factory.mktemp("placed") / "app.py"
    source.write_text(SOURCE)
    platform.deploy(source)
    assert platform.output("placed.here") == "here"
    yield wait_until(lambda: next((each["id"] for each in platform.containers("placed")), None), "it is listed")
    platform.cli("app", "stop", "placed")


def test_why_a_container_is_where_it_is(platform: Platform, container: str) -> None:
    """In plain sentences, by container and by function, and as data; of which version, and when."""

    def running() -> list[str]:
        lines = platform.cli("placement", "explain", container).stdout.splitlines()
        return lines if lines[0].startswith(f"{container} runs on ") else []

    told = wait_until(running, "the controller hears that it is ready")
    assert told[0].startswith(f"{container} runs on a CPU slot on local: placed.here@v1, placed ")
    assert told[1].startswith("Of 4 devices and slots ")
    of_function = platform.cli("placement", "explain", "placed.here").stdout.splitlines()
    assert of_function[0] == "Now:"
    # A container more, which the platform's other apps leave no room for, may be told of before it.
    assert any(
        line.startswith(f"  {container} runs on a CPU slot on local: placed.here@v1, placed ") for line in of_function
    )
    (decision,) = json.loads(platform.cli("placement", "explain", container, "--json").stdout)["decisions"]
    assert (decision["winner"]["node"], decision["function"]) == ("local", "default:placed.here")
    assert (decision["version"], decision["state"]) == ("placed.here@v1", "running")


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("placed", "placed is an app, not a container: placed has placed.here."),
        ("placed.her", "There is no function placed.her. Did you mean placed.here?"),
        ("placed.nope", "There is no function placed.nope: placed has placed.here."),
    ],
)
def test_what_is_no_container_is_answered_with_what_there_is(
    platform: Platform, container: str, subject: str, said: str
) -> None:
    """An app, and functions that there are not."""
    unknown = platform.cli("placement", "explain", subject, check=False)

    assert unknown.returncode == 1
    assert said in unknown.stderr


def test_why_a_node_was_not_chosen(platform: Platform, container: str) -> None:
    """On the fleet as it was then."""
    asked = ("placement", "explain", container, "--why-not")

    assert "local was chosen: a CPU slot." in platform.cli(*asked, "local").stdout
    assert "There was no node elsewhere at revision" in platform.cli(*asked, "elsewhere").stdout
    unknown = platform.cli("placement", "explain", "ctr_nobody", check=False)
    assert unknown.returncode == 1
    assert "container ctr_nobody" in unknown.stderr


def test_the_fleet_is_drawn(platform: Platform, container: str) -> None:
    """Its slots, and who is on them."""
    assert f"{container} (default)" in platform.cli("fleet", "--slots").stdout
    told = json.loads(platform.cli("fleet", "--json").stdout)
    assert told["totals"]["CPU"]["devices"] == 4


def test_what_can_never_fit_is_refused_at_deploy(platform: Platform, tmp_path: Path) -> None:
    """The deploy says what there is, and nothing is deployed."""
    (tmp_path / "app.py").write_text(LARGE)

    told = platform.refusal(tmp_path / "app.py")
    assert "never can never run here: it asks for H100 with 131.0 GiB" in told
    assert "and the fleet has 4 CPU slots" in told


def test_the_plan_of_a_function(platform: Platform, container: str) -> None:
    """That of one without a GPU is short."""
    told = platform.cli("placement", "plan", "placed.here").stdout

    assert told.startswith("placed.here@v1\nhere asks for a CPU slot and 0.2 GiB of host memory.\n")
    assert told.endswith("The fleet can hold it.\n")


def test_the_plan_says_how_much_of_a_floor_fits(platform: Platform, tmp_path: Path) -> None:
    """Before it is deployed."""
    (tmp_path / "app.py").write_text(SOURCE.replace('spread="node"', "min_containers=9"))

    told = platform.cli("placement", "plan", f"{tmp_path / 'app.py'}::here").stdout

    assert "Of its floor of 9 containers 4 fit at most, if all of the fleet were free; 0 are there now, and " in told
