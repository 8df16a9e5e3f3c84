"""Docstrings as Markdown: paragraphs as they are, `Args:` and its like as tables."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

SECTIONS = {"Args": ("argument", "is"), "Options": ("option", "is"), "Raises": ("raises", "when")}
"""A section of a docstring -> the heads of its table."""
SECTION = re.compile(rf"({'|'.join(SECTIONS)}):")
ITEM = re.compile(r"([\w, *]+?)(?:: (.*))?")


def cell(text: object) -> str:
    """A text as one cell of a table."""
    return " ".join(str(text).split()).replace("|", "\\|")


def table(heads: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    """A table, or nothing without rows."""
    lines = [f"| {' | '.join(map(cell, row))} |" for row in rows]
    return "\n".join([f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *lines]) if lines else ""


def code(text: str) -> str:
    """A text as code, or nothing of nothing."""
    return f"`{text}`" if text else ""


def anchor(heading: str) -> str:
    """The anchor that a heading gets."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def markdown(text: str, types: Mapping[str, str] | None = None) -> str:
    """A docstring, cleaned, as Markdown. `types` of arguments and options have a column of their own."""
    parts: list[str] = []
    lines = text.splitlines()
    while lines:
        line = lines.pop(0)
        found = SECTION.fullmatch(line)
        if found is None:
            parts.append(line)
            continue
        body: list[str] = []
        while lines and (not lines[0].strip() or lines[0].startswith(" ")):
            body.append(lines.pop(0))
        parts += ["", _section(found[1], items_of(body), types or {}), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).strip()


def items_of(lines: list[str]) -> list[tuple[str, str]]:
    """The entries `name: text` of a section; what is indented more goes on."""
    found: list[tuple[str, str]] = []
    for line in textwrap.dedent("\n".join(lines)).splitlines():
        item = None if line.startswith(" ") else ITEM.fullmatch(line)
        if item is not None:
            found.append((item[1], item[2] or ""))
        elif line.strip() and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}".strip())
        elif line.strip():
            found.append(("", line.strip()))
    return found


def _section(name: str, items: list[tuple[str, str]], types: Mapping[str, str]) -> str:
    heads = SECTIONS[name]
    if name != "Raises" and any(item in types for item, _ in items):
        rows = [(code(item), code(types.get(item, "")), text) for item, text in items]
        return table((heads[0], "type", heads[1]), rows)
    if not any(text for _, text in items):  # `Raises: NoKey.`
        return f"Raises {', '.join(code(item.rstrip('.')) for item, _ in items)}."
    return table(heads, [(code(item) if item else "", text) for item, text in items])


def field_docs(kind: type) -> dict[str, str]:
    """The docstrings of a class's fields, its bases' too: the string behind each."""
    found: dict[str, str] = {}
    for cls in reversed(kind.__mro__[:-1]):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
        except (OSError, TypeError):
            continue
        body = getattr(tree.body[0], "body", [])
        for field, text in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _is_text(text):
                found[field.target.id] = inspect.cleandoc(text.value.value)
    return found


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def own_doc(thing: Callable[..., Any] | type | property) -> str:
    """Its own docstring, cleaned."""
    return inspect.cleandoc(thing.__doc__ or "")
