"""From a spec to a target, in a process of its own: environment, threads, module path, hooks, the check."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotlight_core.model.spec import FunctionSpec
from tests.builders.specs import function_spec, method

PROGRAM = """
import asyncio, json, os, socket, sys
from pathlib import Path
import msgspec
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.frames import Load
from pilotlight_runtime.guest.guest_process import HookRunner
from pilotlight_runtime.guest.loading import NotLoaded, load_async, load_blocking, reported, send_loaded
from pilotlight_runtime.guest.guest_nested import GuestNested

root, is_async, spec = sys.argv[1], sys.argv[2] == "async", msgspec.json.decode(sys.argv[3], type=FunctionSpec)
ours, theirs = socket.socketpair()
channel, load = Channel(ours), Load(spec=spec, root=root, env={"FROM_AGENT": "1", "BOTH": "agent"})
try:
    nested = GuestNested(channel, load)
    if is_async:
        target = asyncio.run(load_async(load, channel, nested))
    else:
        target = load_blocking(load, channel, nested, HookRunner())
    send_loaded(channel, target)
    for hook in target.exit:
        with reported():
            hook()
except NotLoaded:
    target = None
from pilotlight_runtime.guest.frames import FrameDecoder
from pilotlight_runtime.guest.frames import FromGuest
decoder = FrameDecoder(FromGuest)
frames = decoder.filled(theirs.recv_into(decoder.space()))
def told(frame):
    name = getattr(frame, "name", "") or getattr(frame, "step", "")
    return [type(frame).__name__, name, getattr(getattr(frame, "error", None), "type", "")]
log = getattr(sys.modules.get("app"), "LOG", [])
print(json.dumps({"frames": [told(frame) for frame in frames], "env": dict(os.environ), "log": log}))
"""

SERVICE = """
import os
LOG = []
class Service:
    def __init__(self): LOG.append("made")
    def open(self): LOG.append("enter " + os.environ["BOTH"])
    async def warm(self): LOG.append("warm")
    def __check__(self): return CHECK
    def close(self): LOG.append("exit"); raise ValueError("in the log")
    def run(self): pass
"""


def load(folder: Path, source: str, spec: FunctionSpec, how: str = "blocking") -> dict[str, Any]:
    """What a process says and shows that loads `source` as the module `app`."""
    (folder / "app.py").write_text(textwrap.dedent(source))
    command = [sys.executable, "-c", PROGRAM, str(folder), how, msgspec.json.encode(spec).decode()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer | {"stderr": done.stderr}


def service(**more: Any) -> FunctionSpec:
    options: dict[str, Any] = {"is_class": True, "qualname": "Service", "enter": ("open", "warm"), "exit": ("close",)}
    return function_spec("service", method("run", "run"), **options | more)


@pytest.mark.parametrize("how", ["blocking", "async"])
def test_a_class_is_made_entered_and_checked_in_that_order(tmp_path: Path, how: str) -> None:
    """Each step is told; an exit hook that raises goes into the log."""
    found = load(tmp_path, "CHECK = True\n" + SERVICE, service(), how)

    assert [frame[:2] for frame in found["frames"]] == [
        ["LoadStep", "import"],
        ["LoadStep", "enter"],
        ["LoadStep", "check"],
        ["Loaded", ""],
    ]
    assert found["log"] == ["made", "enter agent", "warm", "exit"]
    assert "ValueError: in the log" in found["stderr"]


@pytest.mark.parametrize(
    ("source", "spec", "step", "error"),
    [
        ("import nothing_of_the_kind", service(), "import", "ModuleNotFoundError"),
        ("def Service(): pass", service(), "import", "TypeError"),
        ("CHECK = True\n" + SERVICE, service(enter=("missing",)), "enter", "AttributeError"),
        ("CHECK = False\n" + SERVICE, service(), "check", "RuntimeError"),
        ("raise SystemExit(3)", service(), "import", "SystemExit"),
    ],
)
def test_whatever_the_tenants_code_raises_is_told_with_its_step(
    tmp_path: Path, source: str, spec: FunctionSpec, step: str, error: str
) -> None:
    """And nothing is loaded."""
    assert load(tmp_path, source, spec)["frames"][-1] == ["LoadError", step, error]


def test_the_agents_variables_win_over_the_specs(tmp_path: Path) -> None:
    """They say which devices there are."""
    spec = function_spec("f", env={"BOTH": "spec", "OWN": "1"}, cpu=2.5)
    env = load(tmp_path, "def f(): pass", spec)["env"]

    assert (env["BOTH"], env["OWN"], env["FROM_AGENT"], env["OMP_NUM_THREADS"]) == ("agent", "1", "1", "3")


def test_threads_that_the_spec_names_are_left_alone(tmp_path: Path) -> None:
    """A tenant may know better."""
    spec = function_spec("f", env={"OMP_NUM_THREADS": "7"}, cpu=2.0)

    assert load(tmp_path, "def f(): pass", spec)["env"]["OMP_NUM_THREADS"] == "7"


ADD = """
import json, os, subprocess, sys
from pilotlight_runtime.guest.loading import add_packages

before = list(sys.path)
add_packages(sys.argv[1])
import added, json as still
child = subprocess.run([sys.executable, "-c", "import added; print(added.NAME)"], capture_output=True, text=True)
print("\\n" + json.dumps({
    "name": added.NAME, "added": [path for path in sys.path if path not in before], "at": sys.path.index(sys.argv[1]),
    "site": next(n for n, path in enumerate(sys.path) if path.endswith("site-packages")),
    "stdlib": os.path.dirname(still.__file__), "pth": os.environ.get("FROM_PTH", ""), "child": child.stdout.strip(),
}))
"""


def test_packages_come_before_those_of_the_base_and_after_pythons_own(tmp_path: Path) -> None:
    """What *.pth files say is done, and programs that the function starts find them too."""
    packages = tmp_path / "packages"
    (packages / "json").mkdir(parents=True)
    (packages / "json" / "__init__.py").write_text("raise ImportError('not this one')\n")
    (packages / "added.py").write_text("NAME = 'of the tenant'\n")
    (packages / "more.pth").write_text("more\nimport os; os.environ['FROM_PTH'] = 'ran'\n")
    (packages / "more").mkdir()

    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # as in a sandbox
    done = subprocess.run(
        [sys.executable, "-c", ADD, str(packages)], capture_output=True, text=True, timeout=60, check=True, env=env
    )
    told = json.loads(done.stdout.strip().rpartition("\n")[2])

    assert (told["name"], told["pth"], told["child"]) == ("of the tenant", "ran", "of the tenant")
    assert told["added"] == [str(packages), str(packages / "more")]
    assert told["at"] + 1 == told["site"]
    assert not told["stdlib"].startswith(str(tmp_path))
