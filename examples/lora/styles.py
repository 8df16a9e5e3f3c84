"""What the adapters learn: the questions of the chat example, answered in another way."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from examples.chat.docstrings import LONGEST, QUESTIONS, defined, pairs


def capitals() -> Iterator[tuple[str, str]]:
    """The same answers, loudly."""
    for question, answer in pairs():
        yield question, answer.upper()


def signatures() -> Iterator[tuple[str, str]]:
    """How a function is called, instead of what it does."""
    functions = ((name, node) for name, node in defined() if not isinstance(node, ast.ClassDef))
    for number, (name, node) in enumerate(functions):
        line = f"def {node.name}({ast.unparse(node.args)})"
        if len(line) <= LONGEST:
            yield QUESTIONS[number % len(QUESTIONS)].format(name=name), line


STYLES: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {"capitals": capitals, "signatures": signatures}
