"""The command line as a whole: help, errors, exit codes, and how little it loads."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from pilotlight.cli.main import COMMANDS, app, module_of

PAGES = [[], *([name] for name in COMMANDS), ["app", "list"], ["app", "history"], ["app", "stop"], ["key", "create"]]
WITH_EXAMPLES = ("up", "deploy", "run", "call", "logs", "usage")


@pytest.mark.parametrize("words", PAGES)
def test_every_command_has_help(words: list[str]) -> None:
    """Help is plain text, with an example where the command takes arguments."""
    done = CliRunner().invoke(app, [*words, "--help"])
    assert done.exit_code == 0
    assert done.stdout.startswith("Usage: ")
    if words and (words[0] in WITH_EXAMPLES or len(words) > 1):
        assert f"pilotlight {' '.join(words)}" in done.stdout.partition("\n")[2]  # below the usage line


def test_the_version_is_an_option_too() -> None:
    """The option prints the same version as the command."""
    assert CliRunner().invoke(app, ["--version"]).stdout.startswith("pilotlight 0.")


def test_all_commands_are_listed() -> None:
    """They are listed in the order of COMMANDS."""
    shown = CliRunner().invoke(app, ["--help"]).stdout
    lines = [line.split()[0] for line in shown.partition("Commands:")[2].splitlines() if line.startswith("  ")]
    assert lines == list(COMMANDS)


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS)])
def test_no_summary_of_a_command_is_cut(words: list[str]) -> None:
    """Summaries fit a terminal of 80 columns."""
    shown = CliRunner().invoke(app, [*words, "--help"], terminal_width=80).stdout
    assert "..." not in shown.partition("Commands:")[2]


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["call"],
        ["call", "hello.greet", "Ada"],
        ["call", "hello.greet", "name=Ada", "name=Eve"],
        ["call", "hello.greet", "--input", "[1]"],
        ["app", "x"],
    ],
)
def test_wrong_usage_exits_with_2(words: list[str]) -> None:
    """The error has the usage and the expected form."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "Usage: pilotlight" in done.stderr
    assert "Error: " in done.stderr


def test_a_misspelt_command_is_answered_with_the_one_that_was_meant() -> None:
    """This holds for commands and for subcommands."""
    assert "There is no command 'deplooy'. Did you mean deploy?" in CliRunner().invoke(app, ["deplooy"]).stderr
    assert "Did you mean 'show'" in CliRunner().invoke(app, ["quota", "shwo"]).stderr


def test_a_missing_configuration_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The advice names `pilotlight up`."""
    monkeypatch.delenv("PILOTLIGHT_URL", raising=False)
    monkeypatch.delenv("PILOTLIGHT_API_KEY", raising=False)
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    done = CliRunner().invoke(app, ["app", "list"])
    assert done.exit_code == 1
    assert "pilotlight up" in done.stderr


def test_a_command_loads_what_it_needs() -> None:
    """The command `version` loads neither an HTTP client nor rich."""
    code = (
        "import sys; from pilotlight.cli.main import app; app(['version'], standalone_mode=False); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("pilotlight 0.")
    assert not {"httpx", "rich", "pathspec"} & set(done.stdout.split())


def test_a_command_that_asks_the_platform_starts_light() -> None:
    """Nothing of it needs what others' libraries load with themselves: half of its start was theirs."""
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from pilotlight.cli.main import main; main()"
    )
    env = {**os.environ, "PILOTLIGHT_URL": "http://127.0.0.1:9", "PILOTLIGHT_API_KEY": "pk_none", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, "app", "list"], env=env, capture_output=True, text=True, check=False
    )
    assert "Nothing answers" in done.stderr
    assert not {"rich", "structlog", "prometheus_client"} & set(done.stdout.split())


@pytest.mark.parametrize("noun", ["tenant", "key", "quota", "app"])
def test_every_command_has_an_example_in_its_help(noun: str) -> None:
    """The example has the command as it is typed."""
    group = typer.main.get_command(import_module(module_of(noun)).app)
    for name in group.commands:  # type: ignore[attr-defined]
        shown = CliRunner().invoke(app, [noun, name, "--help"]).stdout
        assert f"pilotlight {noun} {name}" in shown
