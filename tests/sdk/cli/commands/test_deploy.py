"""`pilotlight deploy`: what it sends and prints, and what it refuses."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import msgspec

from tests.sdk.cli.shell import ESCAPE, invoke, on_terminal
from tests.sdk.scripted import ScriptedPlatform, answer, problem


def test_a_deploy_prints_lines_that_work(platform: ScriptedPlatform, folder: Path) -> None:
    """The printed curl command reaches the function, with the key from its variable."""
    done = invoke("deploy", "app.py", "-m", "why")
    assert done.exit_code == 0, done.stderr
    assert "hello.greet@v3\n" in done.stdout
    assert "second.two@v3  (unchanged)" in done.stdout
    assert "  pilotlight call hello.greet name=world\n" in done.stdout
    assert "  pilotlight call second.two number=1\n" in done.stdout
    assert done.stderr == f"packed {folder.name}: 1 file, {(folder / 'app.py').stat().st_size} B\n"
    assert platform.asked("/v1/apps/hello/deploys")[0].json["message"] == "why"

    platform.will("POST", "/v1/functions/hello.greet/calls", answer({"output": "hi"}))
    curl = next(line for line in done.stdout.splitlines() if line.startswith("  curl"))
    assert shutil.which("curl"), "curl is needed to see that the printed line works"
    ran = subprocess.run(["sh", "-c", curl], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert ran.stdout == '{"output":"hi"}'
    request = platform.asked("/v1/functions/hello.greet/calls")[0]
    assert request.headers["authorization"] == f"Bearer {os.environ['PILOTLIGHT_API_KEY']}"
    assert request.json == {"input": {"name": "world"}}


def test_warnings_of_the_platform_go_to_stderr(platform: ScriptedPlatform, folder: Path) -> None:
    """A warning does not change the exit code, and stdout has only the deploy."""
    warned = {"app": "hello", "revision": 3, "functions": [], "warnings": ["greet: of min_containers=9 only 4."]}
    platform.will("POST", "/v1/apps/hello/deploys", answer(warned))

    done = invoke("deploy", "app.py")

    assert done.exit_code == 0
    assert "warning: greet: of min_containers=9 only 4.\n" in done.stderr
    assert "warning" not in done.stdout


def test_functions_are_removed_once_somebody_says_yes(platform: ScriptedPlatform, folder: Path) -> None:
    """The question names them; where nobody can be asked it is an error that says what to add."""
    gone = problem("removes_functions", "hello has functions that are not in this deploy: old, older.", removes=["old"])
    done = answer({"app": "hello", "revision": 4, "functions": [], "removed": ["old", "older"]})
    path = "/v1/apps/hello/deploys"
    platform.will("POST", path, gone, gone, done)

    refused = invoke("deploy", "app.py")
    assert refused.exit_code == 1
    assert "To remove them add --prune; to keep them deploy them too." in refused.stderr

    asked = on_terminal("deploy", "app.py", cwd=folder, typed="y\n")
    assert "hello has functions that are not in this deploy: old, older. Remove them? [y/N]" in ESCAPE.sub("", asked)
    assert "Removed old, older." in asked
    for flag in ("--prune", "--yes", "-y"):
        assert "Removed old, older." in invoke("deploy", "app.py", flag).stdout
    pruned = [request.json.get("prune", False) for request in platform.asked(path)]
    assert pruned == [False, False, True, True, True, True]


def test_a_deploy_as_json(folder: Path) -> None:
    """The output has one object per app."""
    done = invoke("deploy", "app.py", "--json")
    assert [deployed["app"] for deployed in msgspec.json.decode(done.stdout)] == ["hello", "second"]


def test_what_cannot_be_packed_is_refused(platform: ScriptedPlatform, folder: Path) -> None:
    """The error is one line without advice, and nothing is sent."""
    (folder / "model.pkl").touch()
    done = invoke("deploy", "app.py")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "'model.pkl' is a pickle" in done.stderr
    assert platform.requests == []


def test_a_deploy_shows_its_upload(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """A terminal shows a progress bar with the size."""
    (tmp_path / "app.py").write_text("from pilotlight import App\n@App('a').gpu_function\ndef f(): ...\n")
    (tmp_path / "large.bin").write_bytes(b"x" * 3_000_000)
    done = {"app": "a", "revision": 1, "functions": []}
    platform.does("PUT", "/v1/blobs/", lambda request: answer({}))
    first = {**done, "missing": [hashlib.sha256((tmp_path / "large.bin").read_bytes()).hexdigest()]}
    platform.will("POST", "/v1/apps/a/deploys", answer(first), answer(done))
    shown = ESCAPE.sub("", on_terminal("deploy", "app.py", cwd=tmp_path))
    assert "uploading a" in shown
    assert "3.0 MB" in shown
