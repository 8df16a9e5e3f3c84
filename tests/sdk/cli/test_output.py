"""What is printed: tables, errors and quantities, plain and on a terminal."""

from __future__ import annotations

import pytest

from pilotlight.cli.output import bar, milliseconds, print_json, show_error, size, span
from pilotlight.definitions.errors import FunctionRaised, Misuse
from tests.sdk.cli.shell import invoke, on_terminal
from tests.sdk.scripted import ScriptedPlatform, problem


def test_quantities_are_short() -> None:
    """Bytes, spans and milliseconds have few digits and a unit."""
    assert [size(count) for count in (12, 1_400, 2_500_000, 3e9)] == ["12 B", "1.4 kB", "2.5 MB", "3.0 GB"]
    assert [span(seconds) for seconds in (-1, 42, 200, 7_300, 500_000)] == ["0s", "42s", "3m", "2h", "6d"]
    assert [milliseconds(ms) for ms in (0.0, 0.0076, 0.84, 12.3, 2_310)] == [
        "0.0 ms",
        "7.6 us",
        "0.8 ms",
        "12 ms",
        "2.31 s",
    ]


def test_an_error_is_two_lines_and_exit_code_1(platform: ScriptedPlatform) -> None:
    """The lines are the error and its advice, without a traceback."""
    platform.will("GET", "/v1/apps", problem("forbidden", "The key has no scope 'read'."))
    done = invoke("app", "list")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        "error: The key has no scope 'read'.\n"
        "Use a key that may do this: 'pilotlight key list' shows what each one may.\n"
    )


def test_a_reached_limit_is_shown_in_numbers(platform: ScriptedPlatform) -> None:
    """Each limit is a line, and the advice has the wait."""
    limits = [
        {
            "limit": "requests_per_s", "tenant": "acme", "function": "zoo:llm.chat", "allowed": 5.0, "burst": 10.0,
            "left": 0.0,
        },
        {"limit": "concurrency", "tenant": "acme", "allowed": 4, "current": 4},
    ]  # fmt: skip
    platform.will("DELETE", "/v1/keys/k9", problem("rate_limited", "Too much.", limits=limits, retry_after=90.0))

    assert invoke("key", "revoke", "k9").stderr.splitlines() == [
        "error: Too much.",
        "  requests_per_s=5 of acme, calls to zoo:llm.chat: burst 10, left 0",
        "  concurrency=4 of acme: current 4",
        "Run the command again in 90.0 s.",
    ]


def test_an_error_of_the_platform_names_its_request(platform: ScriptedPlatform) -> None:
    """The id finds the request in the platform's logs."""
    platform.will("GET", "/v1/apps", problem("internal", "oh"))
    assert "request req_1" in invoke("app", "list").stderr


def test_an_error_is_red(platform: ScriptedPlatform) -> None:
    """Only the word `error` is red."""
    platform.will("GET", "/v1/apps", problem("forbidden", "no"))
    assert "\x1b[31merror:\x1b[0m no" in on_terminal("app", "list")


def test_json_is_indented_or_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Streams print one line each."""
    print_json({"a": [1]}, indent=False)
    print_json({"a": [1]})
    assert capsys.readouterr().out == '{"a":[1]}\n{\n  "a": [\n    1\n  ]\n}\n'


def test_what_a_function_raised_is_shown_with_its_type(capsys: pytest.CaptureFixture[str]) -> None:
    """A KeyError is named by its type, and a misuse on this side has no advice."""
    show_error(FunctionRaised("'a'", exception="KeyError", traceback="Traceback\n  app.py\n"))
    show_error(Misuse("x is no file."))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:3] == ["Traceback", "  app.py", "error: KeyError: 'a'"]
    assert lines[-1] == "error: x is no file."


def test_a_bar_is_shown_on_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal nothing is printed."""
    with bar("measuring", 3) as step:
        step(1, "batch 2")
    assert capsys.readouterr() == ("", "")
