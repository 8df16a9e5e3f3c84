"""What is different on a terminal: colours, tables, bars and lines that change."""

from __future__ import annotations

import hashlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from tests.sdk.cli.test_lists import SCRIPT
from tests.sdk.scripted import ScriptedPlatform, answer, event, problem, result, stream

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(*words: str, cwd: Path | None = None, columns: int = 120) -> str:
    """What a person would see, escape sequences and all."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns)}
    env.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "pilotlight.cli.main", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=env,
        cwd=cwd,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65_536):
            shown += piece
    except OSError:  # the far end is closed
        pass
    finally:
        os.close(ours)
        process.wait(20)
    return shown.decode()


def test_a_table_has_a_bold_head(platform: ScriptedPlatform) -> None:
    """And the same cells."""
    platform.will("GET", "/v1/apps", answer(SCRIPT["/v1/apps"]))
    shown = on_terminal("app", "list")
    assert "\x1b[1m" in shown
    assert re.search(r"search +embed +v7 +H100 or CPU +2 +2h ago", ESCAPE.sub("", shown))


def test_a_cell_is_never_broken(platform: ScriptedPlatform) -> None:
    """However narrow the window: names are there to be copied."""
    platform.will("GET", "/v1/containers", answer(SCRIPT["/v1/containers"]))
    shown = ESCAPE.sub("", on_terminal("container", "list", columns=40))
    assert re.search(r"ctr_1 +search.embed +ready .* bubblewrap", shown)


def test_an_error_is_red(platform: ScriptedPlatform) -> None:
    """Only the word."""
    platform.will("GET", "/v1/apps", problem("forbidden", "no"))
    assert "\x1b[31merror:\x1b[0m no" in on_terminal("app", "list")


def test_a_call_shows_its_stages_on_one_line(platform: ScriptedPlatform) -> None:
    """Which is gone when the answer comes."""
    stage = event("stage", {"name": "loading", "ms": 1200.0, "detail": {"import": 900.0}})
    platform.will("POST", "/v1/functions/hello.greet/calls", stream(stage, result("hi")))
    shown = on_terminal("call", "hello.greet")
    assert "loading 1.20 s (import 900 ms)" in ESCAPE.sub("", shown)
    assert "\x1b[2K" in shown
    assert '"hi"' in shown


def test_a_deploy_shows_its_upload(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """As a bar."""
    (tmp_path / "app.py").write_text("from pilotlight import App\n@App('a').gpu_function\ndef f(): ...\n")
    (tmp_path / "large.bin").write_bytes(b"x" * 3_000_000)
    done = {"app": "a", "revision": 1, "functions": []}
    platform.does("PUT", "/v1/blobs/", lambda request: answer({}))
    first = {**done, "missing": [hashlib.sha256((tmp_path / "large.bin").read_bytes()).hexdigest()]}
    platform.will("POST", "/v1/apps/a/deploys", answer(first), answer(done))
    shown = ESCAPE.sub("", on_terminal("deploy", "app.py", cwd=tmp_path))
    assert "uploading a" in shown
    assert "3.0 MB" in shown
