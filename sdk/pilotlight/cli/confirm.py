"""Asks before what cannot be undone."""

from __future__ import annotations

import sys

import typer

from pilotlight.cli.output import on_terminal


def confirmed(question: str) -> bool:
    """Whether the person at the terminal says yes; where nobody is, False."""
    return on_terminal(stderr=True) and sys.stdin.isatty() and typer.confirm(question, err=True)
