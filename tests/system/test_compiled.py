"""A platform of compiled modules, as the wheel ships it: its guests run the plain files."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.system.support.platform import platform
from tests.waiting import wait_until
from tools.compiled_tree import compiled_tree

APP = '''
import sys
from pathlib import Path

import pilotlight_runtime.guest
from pilotlight import App

app = App("seen")


@app.gpu_function()
def libraries(tree: str) -> list[str]:
    """Compiled modules that this process has loaded or could find, and the tree that holds them."""
    ours = [module for name, module in sys.modules.items() if name.startswith("pilotlight")]
    loaded = [module.__file__ for module in ours if not module.__file__.endswith(".py")]
    folders = {Path(module.__file__).parent for module in ours}
    beside = [str(path) for folder in folders for path in folder.glob("*.so")]
    return loaded + beside + [tree] * Path(tree).exists()


@app.gpu_function()
def count(n: int):
    yield from range(n)
'''
STARTED = {"gateway": "gateway serves", "duties": "ready", "controller": "ready", "agent": "the agent is up"}
"""Process -> what it logs at its start."""


@pytest.mark.long
def test_every_process_runs_compiled_and_no_guest_does(tmp_path: Path) -> None:
    """Calls and streams go their whole way, and a sandbox sees no compiled module."""
    (tmp_path / "app.py").write_text(APP)
    tree = str(compiled_tree())
    with platform(tmp_path, "--cpu-slots", "2", "--blanks", "1", env={"PYTHONPATH": tree}) as running:
        running.deploy(tmp_path / "app.py")

        assert running.output("seen.libraries", tree=tree) == []
        assert running.cli("call", "seen.count", "n=3").stdout.split() == ["0", "1", "2"]
        for name, words in STARTED.items():
            log = running.state / "logs" / f"{name}.log"
            wait_until(partial(says_that_it_is_compiled, log, words), f"{name} says that it runs compiled")


def says_that_it_is_compiled(log: Path, words: str) -> bool:
    """Whether the line with these words does, which is there once the process has started."""
    said = [json.loads(line) for line in log.read_text().splitlines() if words in line]
    return any(line["event"] == words and line["compiled"] is True for line in said)
