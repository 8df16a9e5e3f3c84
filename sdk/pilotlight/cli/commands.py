"""How commands are declared: plain help, no completion of their own."""

from __future__ import annotations

from typing import Any

import typer


def command_app(**more: Any) -> typer.Typer:
    """An empty typer app for one command, or for the commands of one noun."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **more)
