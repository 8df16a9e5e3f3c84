"""Statements of the code's files. Expressions are nine tenths of a syntax tree, and hold none."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

WITHIN = ("body", "handlers", "orelse", "finalbody", "cases")
"""The fields of a statement in which others stand."""


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a file, read once."""
    return read_tree(path)


def read_tree(path: Path) -> ast.Module:
    """The tree of a file, which is read anew each time and not kept."""
    return parse(path.read_text())


def parse(text: str) -> ast.Module:
    """The tree of a text. Collections of garbage meanwhile would walk what is made again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if enabled:
            gc.enable()


def inner(node: ast.AST) -> Iterator[ast.AST]:
    """What stands directly within a statement or module: statements, handlers of errors and cases of a match."""
    for field in WITHIN:
        yield from getattr(node, field, ())


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """It, and all that stands within it."""
    yield node
    for child in inner(node):
        yield from walk(child)
