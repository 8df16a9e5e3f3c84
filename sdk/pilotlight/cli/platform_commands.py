"""Commands whose code is the platform's, found by name among the installed entry points.

    [project.entry-points."pilotlight.commands"]
    up = "package.module:function [extra]"

The function reads `sys.argv`, may return an exit code, and runs in a process of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any

from pilotlight.cli.output import print_json
from pilotlight.definitions.errors import OptionError

GROUP = "pilotlight.commands"
REQUIREMENT = re.compile(r"""(?P<name>[\w.-]+).*;.*\bextra\s*==\s*["'](?P<extra>[\w.-]+)["']""")
"""`nats-py<2.17,>=2.16; extra == "server"`"""


def command_line(name: str) -> list[str]:
    """Return the words that start the command `name` in a process of its own.

    Raises:
        OptionError: with the command that installs what is missing.
    """
    find_command(name)
    return [sys.executable, "-m", "pilotlight.cli.platform_commands", name]


def run_command(name: str, words: Sequence[str], *, as_json: bool = False) -> int:
    """Run the command `name` in a process of its own to its end; return its exit code.

    `as_json`: what it prints to stderr is passed on, and if nothing else was printed it is the error's detail.
    """
    command = [*command_line(name), *words]
    if not as_json:
        return subprocess.run(command, check=False).returncode
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    sys.stderr.write(done.stderr)
    sys.stdout.write(done.stdout)
    if done.returncode and not done.stdout:
        print_json(child_error(done.stderr), indent=False)
    return done.returncode


def child_error(said: str) -> dict[str, Any]:
    """Return the error of a command that ended with `said` on stderr, as --json prints it."""
    return {"error": {"code": "command_failed", "detail": said.strip().removeprefix("error: ")}}


def find_command(name: str) -> EntryPoint:
    """Return the entry point of a command, or raise as `command_line`."""
    found = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        raise OptionError("The platform is not installed here: pip install 'pilotlight[server]'.")
    if found.dist is not None and (missing := missing_requirements(found.dist, found.extras)):
        package = f"{found.dist.name}[{','.join(found.extras)}]"
        raise OptionError(f"The platform is not installed here ({', '.join(missing)}): pip install '{package}'.")
    return found


def missing_requirements(distribution: Distribution, extras: list[str]) -> list[str]:
    """Return the missing packages of these extras."""
    parts = (REQUIREMENT.match(requirement) for requirement in distribution.requires or ())
    return [part["name"] for part in parts if part and part["extra"] in extras and not _is_installed(part["name"])]


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def main() -> None:
    """Run the command of the first word in this process."""
    name = sys.argv.pop(1)
    sys.argv[0] = f"pilotlight {name}"
    sys.exit(find_command(name).load()())


if __name__ == "__main__":
    main()
