"""Every benchmark measures what the wheel ships, unless it is asked for plain Python."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from benchmarks import report
from tools.compiled_tree import CannotCompile


class Begun(Exception):
    """The program was started anew, with this environment."""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The compiled tree, which is there; what was loaded is plain."""

    def execve(_program: str, arguments: list[str], environment: dict[str, str]) -> None:
        raise Begun(arguments, environment["PYTHONPATH"])

    monkeypatch.setattr(report, "compiled_tree", lambda: tmp_path)
    monkeypatch.setattr(report, "IS_COMPILED", False)
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "benchmarks.overhead", "--quick"])
    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setenv("PYTHONPATH", "/else")
    return tmp_path


def ask(monkeypatch: pytest.MonkeyPatch, *options: str) -> bool:
    """Whether a benchmark with these options is a quick one."""
    monkeypatch.setattr(sys, "argv", ["overhead", *options])
    return bool(report.parsed(report.arguments("overhead", "")).quick)


def test_a_benchmark_begins_anew_on_compiled_modules(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own arguments; every process that it starts inherits the path."""
    with pytest.raises(Begun) as begun:
        ask(monkeypatch, "--quick")

    assert begun.value.args == (["python", "-m", "benchmarks.overhead", "--quick"], f"{tree}:/else")


def test_begun_anew_it_runs(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, not for ever."""
    monkeypatch.setenv("PYTHONPATH", f"{tree}:/else")
    monkeypatch.setattr(report, "IS_COMPILED", True)

    assert ask(monkeypatch, "--quick")


def test_plain_measures_the_sources_and_builds_nothing(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be compiled it is the only way, and the benchmark names it."""
    assert not ask(monkeypatch, "--plain")

    def cannot() -> Path:
        raise CannotCompile("no compiled tree: there is no C compiler (cc)")

    monkeypatch.setattr(report, "compiled_tree", cannot)
    with pytest.raises(SystemExit):
        ask(monkeypatch)


@pytest.mark.parametrize(("options", "is_compiled"), [(["--plain"], True), ([], False)])
def test_figures_are_never_of_the_other_kind(
    tree: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], is_compiled: bool
) -> None:
    """A path that somebody has set, or modules that were not found there, end the benchmark."""
    monkeypatch.setenv("PYTHONPATH", str(tree))
    monkeypatch.setattr(report, "IS_COMPILED", is_compiled)

    with pytest.raises(SystemExit):
        ask(monkeypatch, *options)


def test_the_last_line_says_which_modules_ran(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the machine's words, and as a figure."""
    for is_compiled, word in ((True, "compiled"), (False, "plain")):
        monkeypatch.setattr(report, "IS_COMPILED", is_compiled)
        report.finish("overhead", {"ratio_64": 0.45678})
        said = json.loads(capsys.readouterr().out)
        assert said["figures"] == {"ratio_64": 0.4568, "compiled": int(is_compiled)}
        assert said["machine"].endswith(word)
