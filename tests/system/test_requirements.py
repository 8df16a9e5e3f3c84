"""Functions with packages of an index, on a whole platform with real sandboxes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.package_index import LocalIndex, package_index
from tests.builders.wheels import wheel
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform

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
    assert "packages" in wordy.container_of("wordy", "greet")["timeline"]
