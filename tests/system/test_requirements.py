"""Functions with packages of an index, on a whole platform with real sandboxes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.builders.package_index import LocalIndex, package_index
from tests.builders.wheels import wheel
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.waiting import wait_until

SHOW = """\
from pilotlight import App

import greeting

app = App("wordy", requirements={requirements!r})


@app.gpu_function
def greet() -> str:
    return greeting.text()
"""


@pytest.fixture(scope="module")
def index() -> Iterator[LocalIndex]:
    with package_index(
        wheel("greeting", "1.0", {"greeting.py": "import punctuation\ndef text(): return 'hello' + punctuation.END\n"},
              requires=["punctuation>=2"]),
        wheel("punctuation", "2.1", {"punctuation.py": "END = '!'\n"}),
        wheel("ancient", "1.0", requires=["msgspec<0.1"]),
    ) as served:  # fmt: skip
        yield served


@pytest.fixture(scope="module")
def wordy(tmp_path_factory: pytest.TempPathFactory, index: LocalIndex) -> Iterator[Platform]:
    """A node that may ask the index."""
    folder = tmp_path_factory.mktemp("requirements")
    env = {"PILOTLIGHT_PREIMPORT": "none"}
    flags = ("--cpu-slots", "2", "--blanks", "1", "--package-index", index.url)
    with run_platform(folder, *flags, env=env) as running:
        yield running


def app(folder: Path, *requirements: str) -> Path:
    # The deployer's machine needs what the module imports, as for any deploy.
    (folder / "greeting.py").write_text("def text(): return 'of the deployer'\n")
    (folder / ".pilotlightignore").write_text("greeting.py\n")
    path = folder / "app.py"
    path.write_text(SHOW.format(requirements=list(requirements)))
    return path


def test_a_function_finds_what_its_app_requires(wordy: Platform, index: LocalIndex, tmp_path: Path) -> None:
    """With what that requires, from a blank that was started before anybody deployed it."""
    wordy.deploy(app(tmp_path, "greeting==1.0"))

    assert wordy.output("wordy.greet") == "hello!"

    def is_told() -> bool:  # by its node, a moment later; another container may just be starting
        return any("packages" in container["timeline"] for container in wordy.containers("wordy"))

    wait_until(is_told, "the step is in its timeline")
    assert "hello!" in wordy.cli("run", f"{tmp_path / 'app.py'}::greet").stdout


def test_the_same_requirements_are_the_same_version(wordy: Platform, index: LocalIndex, tmp_path: Path) -> None:
    """Also when the index has a newer package by then: nothing is upgraded that nobody asked for."""
    wordy.deploy(app(tmp_path, "greeting"))
    index.wheels.append(wheel("punctuation", "3.0", {"punctuation.py": "END = '?'\n"}))
    again = wordy.deploy(app(tmp_path, "greeting"))

    assert "(unchanged)" in again
    assert wordy.output("wordy.greet") == "hello!"


def test_what_cannot_be_resolved_is_refused_at_deploy(wordy: Platform, tmp_path: Path) -> None:
    """In the resolver's own words: what the index lacks, what the base environment has otherwise, and what is no
    package.
    """
    unknown = " ".join(wordy.refusal(app(tmp_path, "no-such-package==3")).split())
    assert "no-such-package was not found in the package registry" in unknown
    conflict = " ".join(wordy.refusal(app(tmp_path, "ancient")).split())
    assert "ancient depend on msgspec<0.1" in conflict
    assert "you require ancient" in conflict
    option = " ".join(wordy.refusal(app(tmp_path, "--index-url=http://other.example.com")).split())
    assert "options of installers are not taken" in option


def test_a_build_that_fails_is_in_the_functions_log(wordy: Platform, index: LocalIndex, tmp_path: Path) -> None:
    """And its caller is told; when the index has the file again, the next start succeeds."""
    gone = wheel("fleeting", "1.0")
    index.wheels.append(gone)
    path = app(tmp_path, "greeting", "fleeting")
    path.write_text(path.read_text().replace('"wordy"', '"brief"'))
    wordy.deploy(path)
    index.wheels.remove(gone)

    failed = wordy.call("brief.greet")
    assert failed.status_code >= 500, failed.text
    assert "fleeting" in failed.json()["detail"]
    wait_until(lambda: "fleeting" in wordy.cli("logs", "brief.greet").stdout, "its log has it")
    index.wheels.append(gone)
    wait_until(lambda: wordy.call("brief.greet").status_code == httpx.codes.OK, "it starts")


def test_an_agent_that_is_killed_has_what_it_had_built(wordy: Platform, index: LocalIndex) -> None:
    """A container starts on the next one without asking the index."""
    assert wordy.output("wordy.greet") == "hello!"
    before = len(index.asked)
    wordy.kill("agent")

    wait_until(lambda: wordy.call("wordy.greet").status_code == httpx.codes.OK, "it runs again")
    assert len(index.asked) == before


def test_a_kill_in_the_middle_of_a_build_leaves_nothing_half(
    wordy: Platform, index: LocalIndex, tmp_path: Path
) -> None:
    """The next agent builds it anew."""
    slow, asked, over = wheel("slow", "1.0"), threading.Event(), threading.Event()
    index.wheels.append(slow)
    path = app(tmp_path, "greeting", "slow")
    path.write_text(path.read_text().replace('"wordy"', '"calm"'))
    wordy.deploy(path)

    def hang(_: object) -> None:
        asked.set()
        over.wait(60.0)

    index.answers[f"/files/{slow.filename}"] = hang
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(wordy.call, "calm.greet")
        assert asked.wait(60.0)
        wordy.kill("agent")
        del index.answers[f"/files/{slow.filename}"]
        over.set()
        first.result()

    wait_until(lambda: wordy.call("calm.greet").status_code == httpx.codes.OK, "it is built")
    folders = (wordy.state / "node" / "local" / "environments").glob("*/*")
    assert [folder.name for folder in folders if "." in folder.name or not (folder / "record").is_file()] == []
