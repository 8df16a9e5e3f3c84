"""The command line as a whole: help, errors, exit codes, and how little it loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotlight.cli.main import COMMANDS, app
from tests.sdk.scripted import ScriptedPlatform, problem

PAGES = [[], *([name] for name in COMMANDS), ["app", "list"], ["app", "history"], ["app", "stop"], ["key", "create"]]
WITH_EXAMPLES = ("up", "deploy", "run", "call", "logs", "usage")


@pytest.mark.parametrize("words", PAGES)
def test_every_command_explains_itself(words: list[str]) -> None:
    """In plain text, with an example where it takes arguments."""
    done = CliRunner().invoke(app, [*words, "--help"])
    assert done.exit_code == 0
    assert done.stdout.startswith("Usage: ")
    if words and (words[0] in WITH_EXAMPLES or len(words) > 1):
        assert f"pilotlight {' '.join(words)}" in done.stdout.partition("\n")[2]  # below the usage line


def test_the_version_is_an_option_too() -> None:
    """As people try it first."""
    assert CliRunner().invoke(app, ["--version"]).stdout.startswith("pilotlight 0.")


def test_all_commands_are_listed() -> None:
    """In the order in which one needs them."""
    shown = CliRunner().invoke(app, ["--help"]).stdout
    lines = [line.split()[0] for line in shown.partition("Commands:")[2].splitlines() if line.startswith("  ")]
    assert lines == list(COMMANDS)


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS)])
def test_no_summary_of_a_command_is_cut(words: list[str]) -> None:
    """In a terminal of 80 columns, and so in any wider one."""
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
    """And says what is expected."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "Usage: pilotlight" in done.stderr
    assert "Error: " in done.stderr


def test_a_misspelt_command_is_answered_with_the_one_that_was_meant() -> None:
    """At the top and below."""
    assert "There is no command 'deplooy'. Did you mean deploy?" in CliRunner().invoke(app, ["deplooy"]).stderr
    assert "Did you mean 'show'" in CliRunner().invoke(app, ["quota", "shwo"]).stderr


def test_an_error_is_two_lines_and_exit_code_1(platform: ScriptedPlatform) -> None:
    """What happened, and what to do; no traceback."""
    platform.will("GET", "/v1/apps", problem("forbidden", "The key has no scope 'read'."))
    done = CliRunner().invoke(app, ["app", "list"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        "error: The key has no scope 'read'.\n"
        "Use a key that may do this: 'pilotlight key list' shows what each one may.\n"
    )


def test_a_limit_that_is_reached_is_told_in_numbers(platform: ScriptedPlatform) -> None:
    """And when to come back, in words of the command line."""
    limits = [
        {
            "limit": "requests_per_s", "tenant": "acme", "function": "zoo:llm.chat", "allowed": 5.0, "burst": 10.0,
            "left": 0.0,
        },
        {"limit": "concurrency", "tenant": "acme", "allowed": 4, "current": 4},
    ]  # fmt: skip
    platform.will("DELETE", "/v1/keys/k9", problem("rate_limited", "Too much.", limits=limits, retry_after=90.0))

    assert CliRunner().invoke(app, ["key", "revoke", "k9"]).stderr.splitlines() == [
        "error: Too much.",
        "  requests_per_s=5 of acme, calls to zoo:llm.chat: burst 10, left 0",
        "  concurrency=4 of acme: current 4",
        "Run the command again in 90.0 s.",
    ]


def test_an_error_of_the_platform_names_its_request(platform: ScriptedPlatform) -> None:
    """For whoever looks into its logs."""
    platform.will("GET", "/v1/apps", problem("internal", "oh"))
    assert "request req_1" in CliRunner().invoke(app, ["app", "list"]).stderr


def test_nothing_configured_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With what to do about it."""
    monkeypatch.delenv("PILOTLIGHT_URL", raising=False)
    monkeypatch.delenv("PILOTLIGHT_API_KEY", raising=False)
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    done = CliRunner().invoke(app, ["app", "list"])
    assert done.exit_code == 1
    assert "pilotlight up" in done.stderr


def test_a_command_loads_what_it_needs() -> None:
    """`version` needs neither an HTTP client nor rich."""
    code = (
        "import sys; from pilotlight.cli.main import app; app(['version'], standalone_mode=False); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("pilotlight 0.")
    assert not {"httpx", "rich", "pathspec"} & set(done.stdout.split())
