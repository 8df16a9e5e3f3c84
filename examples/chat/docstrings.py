"""What the model learns from: questions about Python's library, and its docstrings, which are on every machine."""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
LONGEST = 600
"""Characters of an answer."""
SHORTEST = 20
QUESTIONS = ("What does {name} do?", "What is {name}?", "Explain {name}.")


def pairs() -> Iterator[tuple[str, str]]:
    """Questions and answers, the same on each run."""
    for number, (name, text) in enumerate(documented()):
        yield QUESTIONS[number % len(QUESTIONS)].format(name=name), text


def documented() -> Iterator[tuple[str, str]]:
    """Names of Python's library, and what it says of them."""
    for name, node in defined():
        text = (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")
        if SHORTEST <= len(text) <= LONGEST:
            yield name, text


def defined() -> Iterator[tuple[str, Definition]]:
    """Names of Python's library, and what stands there."""
    library = Path(sysconfig.get_paths()["stdlib"])
    for module in sorted(sys.stdlib_module_names):
        for file in (library / f"{module}.py", *sorted((library / module).glob("*.py"))):
            if file.is_file():
                yield from _in_file(file, ".".join(file.relative_to(library).with_suffix("").parts))


def _in_file(file: Path, module: str) -> Iterator[tuple[str, Definition]]:
    try:
        tree = ast.parse(file.read_text("utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return
    for node in ast.walk(tree):
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield f"{module.removesuffix('.__init__')}.{node.name}", node
