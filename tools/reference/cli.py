"""The reference of the command line, from its commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from pilotlight.cli import main
from tools.reference.docstrings import cell, code, table

HEAD = """# Command line

Every command, as `pilotlight COMMAND --help` shows it. Answers go to stdout, everything else to stderr; `--json` prints
JSON. The exit code is 0, 1 after an error, 2 if the command itself was wrong, and 130 after Ctrl-C.

How a platform is found, and how arguments are written: [calling](../guide/calling.md).
"""


def cli_page() -> str:
    """The page."""
    root: Any = typer.main.get_command(main.app)
    context = root.make_context("pilotlight", ["--help"], resilient_parsing=True)
    commands = [(name, root.get_command(context, name)) for name in root.list_commands(context)]
    overview = table(
        ("command", "does"), [(f"[`{name}`](#pilotlight-{name})", _first(command)) for name, command in commands]
    )
    parts = [HEAD, overview]
    for name, command in commands:
        parts += _command(f"pilotlight {name}", command, "##")
    return "\n\n".join(part for part in parts if part) + "\n"


def commands_of(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The commands of a group, by their whole names."""
    if hasattr(command, "list_commands"):
        context = command.make_context(name, [], resilient_parsing=True)
        for inner in command.list_commands(context):
            yield f"{name} {inner}", command.get_command(context, inner)


def _command(name: str, command: Any, level: str) -> Iterator[str]:
    yield f"{level} {name}"
    inner = list(commands_of(name, command))
    if not inner:
        context = command.make_context(name, [], resilient_parsing=True)
        yield f"```\n{name} {' '.join(command.collect_usage_pieces(context))}\n```"
    yield _help(command.help or "")
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    arguments = [p for p in shown if p.param_type_name == "argument"]
    yield table(("argument", "is"), [(code(p.name), p.help or "") for p in arguments])
    yield table(("option", "does"), [_option(p) for p in shown if p.param_type_name == "option" and p.help])
    for one, below in inner:
        yield from _command(one, below, f"{level}#")


def _option(parameter: Any) -> tuple[str, str]:
    names = ", ".join(code(name) for name in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    if default in (None, "", False, ()) or callable(default):
        return names, parameter.help
    return names, f"{parameter.help}. Default: {cell(default)}"


def _help(text: str) -> str:
    """The text of a command; paragraphs that keep their lines are code."""
    parts = []
    for paragraph in text.split("\n\n"):
        kept = paragraph.lstrip("\n")
        parts.append(f"```\n{kept[1:].strip(chr(10))}\n```" if kept.startswith("\b") else paragraph.strip())
    return "\n\n".join(part for part in parts if part)


def _first(command: Any) -> str:
    return str(command.get_short_help_str(limit=200))
