"""Typer apps with plain help and no completion."""

from __future__ import annotations

from typing import Any

import typer


def command_app(**more: Any) -> typer.Typer:
    """Return an empty Typer app for one command, or for those of one noun."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **more)
