"""Logs of functions: which lines are asked for, and how they are shown."""

from __future__ import annotations

import msgspec

from tests.sdk.cli.shell import invoke, on_terminal, run
from tests.sdk.scripted import Answer, ScriptedPlatform


def test_logs_are_lines(platform: ScriptedPlatform) -> None:
    """The last hundred lines are printed unless a time is given, as text or as JSON."""
    lines = [{"at": 1_000.0, "stream": "stderr", "text": f"line {number}", "function": "embed"} for number in range(2)]
    body = [
        b"\n".join(msgspec.json.encode(line) for line in lines)[:30],
        b"\n".join(map(msgspec.json.encode, lines))[30:],
    ]
    platform.will("GET", "/v1/apps/search/logs", Answer(pieces=body))
    shown = run("logs", "search.embed").splitlines()
    assert [line.split("  ")[1:] for line in shown] == [["embed", "line 0"], ["embed", "line 1"]]
    assert [
        msgspec.json.decode(line) for line in run("logs", "search", "-f", "--since", "10m", "--json").splitlines()
    ] == lines
    assert [request.query for request in platform.requests] == ["function=embed&tail=100", "since=10m&follow=true"]


def test_an_empty_log_is_a_sentence(platform: ScriptedPlatform) -> None:
    """The sentence goes to stderr and mentions a given time."""
    platform.will("GET", "/v1/apps/search/logs", Answer(pieces=[b"\n"]))
    done = invoke("logs", "search")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "Nothing is in the logs of search.\n")
    assert invoke("logs", "search", "--since", "10m").stderr == "Nothing is in the logs of search since then.\n"
    assert invoke("logs", "search", "--tail", "-1").exit_code == 2


def test_a_log_that_breaks_off_is_an_error(platform: ScriptedPlatform) -> None:
    """The lines before the break are printed."""
    platform.will("GET", "/v1/apps/search/logs", Answer(pieces=[b'{"text": "one"}\n'], cut=True))
    done = invoke("logs", "search", "--follow")
    assert done.exit_code == 1
    assert done.stdout.endswith("one\n")
    assert "may have been carried out" in done.stderr


def test_lines_of_stderr_have_a_colour_on_a_terminal(platform: ScriptedPlatform) -> None:
    """Lines of stderr are yellow, and those of the platform are dim."""
    lines = [{"at": 1.0, "stream": name, "text": name} for name in ("stdout", "stderr", "platform")]
    platform.will("GET", "/v1/apps/search/logs", Answer(pieces=[msgspec.json.encode(line) + b"\n" for line in lines]))
    stdout, stderr, own = on_terminal("logs", "search").splitlines()
    assert not stdout.startswith("\x1b")
    assert (stderr.startswith("\x1b[33m"), own.startswith("\x1b[2m")) == (True, True)
