"""Commands that other packages bring: found by their names alone, or refused with what to install."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from pilotlight.cli.platform_commands import GROUP, command_line, find_command, run_command
from pilotlight.definitions.errors import OptionError

CODE = """
import sys

def shout():
    print(*sys.argv)
    return 3
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution with two commands, of which one needs an extra that is not all there."""
    metadata = tmp_path / "gadgets-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: gadgets\nVersion: 1.0\nProvides-Extra: more\n"
        "Requires-Dist: msgspec; extra == 'more'\n"
        'Requires-Dist: no-such-package<2.17,>=2.16; extra == "more"\n'
        'Requires-Dist: no-such-other; extra == "others"\n'
    )
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\nshout = gadgets:shout\nwhisper = gadgets:shout [more]\n")
    (tmp_path / "gadgets.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_command_runs_in_a_process_of_its_own(installed: Path) -> None:
    """It has its own arguments and name, and its exit code is that of the process."""
    command = [*command_line("shout"), "-v", "loud"]
    paths = ":".join([str(installed), *filter(None, sys.path)])
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": paths}, timeout=60)
    assert (done.returncode, done.stdout) == (3, "pilotlight shout -v loud\n"), done.stderr


def test_what_it_says_is_its_error_in_json(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it prints nothing else; what it prints is passed on."""
    monkeypatch.setenv("PYTHONPATH", ":".join([str(installed), *filter(None, sys.path)]))
    (installed / "gadgets.py").write_text("import sys\ndef shout():\n    sys.exit('error: too loud')\n")
    with capture() as shown:
        assert run_command("shout", [], as_json=True) == 1
    assert json.loads(shown[0].getvalue()) == {"error": {"code": "command_failed", "detail": "too loud"}}
    assert shown[1].getvalue() == "error: too loud\n"

    (installed / "gadgets.py").write_text("def shout():\n    print('[1]')\n    return 3\n")
    with capture() as shown:
        assert run_command("shout", [], as_json=True) == 3
    assert shown[0].getvalue() == "[1]\n"


@contextmanager
def capture() -> Iterator[tuple[StringIO, StringIO]]:
    """What is printed to stdout and stderr in this process."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        yield out, err


def test_missing_packages_are_named_with_their_extra(installed: Path) -> None:
    """The error names only missing packages, of the extra of the command."""
    with pytest.raises(OptionError, match=r"\(no-such-package\): pip install 'gadgets\[more\]'"):
        command_line("whisper")


def test_a_command_without_a_platform_is_an_error() -> None:
    """The error has the command that installs the platform."""
    with pytest.raises(OptionError, match=r"pip install 'pilotlight\[server\]'"):
        command_line("no-such-command")


@pytest.mark.parametrize("name", ["up", "doctor", "node-check", "plan"])
def test_the_commands_of_the_platform_are_installed(name: str) -> None:
    """The package declares every entry point that the command line uses."""
    assert callable(find_command(name).load())
