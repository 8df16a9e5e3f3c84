"""Commands whose code is the platform's, found by name among the installed entry points.

    [project.entry-points."pilotlight.commands"]
    up = "package.module:function [extra]"

The function reads `sys.argv`, may return an exit code, and runs in a process of its own.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, entry_points, version

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
