"""What a shell completes: commands, options, and names that the platform knows."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from pilotlight.cli.completions import app_names, function_names, log_names
from tests.command_line import run_command
from tests.sdk.cli.every_command import APP
from tests.sdk.scripted import ScriptedPlatform, answer, problem

CLASS = msgspec.json.decode(msgspec.json.encode(APP))
CLASS["app"] = "parts"
CLASS["functions"][0]["name"] = "Model"
CLASS["functions"][0]["spec"]["methods"][0]["name"] = "ask"


@pytest.fixture
def apps(platform: ScriptedPlatform) -> ScriptedPlatform:
    platform.will("GET", "/v1/apps", answer({"apps": [APP, CLASS, {**APP, "app": "gone", "stopped": True}]}))
    return platform


def completed(*words: str) -> list[str]:
    """What bash would offer for the last word."""
    env = {
        **os.environ, "COMP_WORDS": " ".join(("pilotlight", *words)), "COMP_CWORD": str(len(words)),
        "_PILOTLIGHT_COMPLETE": "complete_bash",
    }  # fmt: skip
    return run_command((), env=env).stdout.split()


def test_commands_and_options_are_completed() -> None:
    """Without a platform."""
    assert completed("de") == ["deploy"]
    assert completed("quota", "set") == ["set", "set-tier"]
    assert completed("call", "--sp") == ["--spawn"]


def test_names_are_completed(apps: ScriptedPlatform) -> None:
    """Of what is deployed: a method of a class is called by its name, and what is stopped has logs only."""
    assert completed("call", "pa") == ["paraphrase-search.paraphrase_multilingual", "parts.Model.ask"]
    assert function_names("parts.") == ["parts.Model.ask"]
    assert log_names("g") == ["gone", "gone.paraphrase_multilingual"]
    assert app_names("par") == ["paraphrase-search", "parts"]


def test_what_goes_wrong_completes_nothing(platform: ScriptedPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    """No platform, a key that may not read, or an answer that does not come."""
    platform.will("GET", "/v1/apps", problem("forbidden", "no"))
    assert completed("call", "pa") == []
    monkeypatch.setenv("PILOTLIGHT_URL", "nonsense")
    assert completed("call", "pa") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how(shell: str, tmp_path: Path) -> None:
    """`--show-completion` prints what `--install-completion` puts where the shell reads it."""
    env = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1", "HOME": str(tmp_path)}
    assert f"complete_{shell}" in run_command(("--show-completion", shell), env=env).stdout
