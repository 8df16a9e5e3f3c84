"""The code blocks of a page: what each is for, and whether an output is the one that the page shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from markdown_it import MarkdownIt

ANYTHING = "…"
"""In a line: any characters. As a line: any lines."""
TITLED = re.compile(r'\w+ title="([^"]+)"')
PROMPT = "$ "


class BlockKind(StrEnum):
    """What is done with a block."""

    FILE = "file"
    PROGRAM = "program"
    COMMANDS = "commands"


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block; `line` is that of its fence."""

    line: int
    kind: BlockKind
    text: str
    name: str = ""
    """Of a file."""
    shown: str | None = None
    """Of a program: its output, where the page shows it."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of a block, and the output that the page shows; without any it is not compared."""

    text: str
    shown: tuple[str, ...]


def blocks_of(text: str) -> list[Block]:
    """The blocks of a page, in order.

    Raises:
        ValueError: there is a block of which nobody knows what it is for.
    """
    blocks: list[Block] = []
    for token in MarkdownIt().parse(text):
        if token.type not in ("fence", "code_block"):
            continue
        line, info = (token.map or [0])[0] + 1, token.info.strip()
        if titled := TITLED.fullmatch(info):
            blocks.append(Block(line=line, kind=BlockKind.FILE, text=token.content, name=titled[1]))
        elif info == "console":
            blocks.append(Block(line=line, kind=BlockKind.COMMANDS, text=token.content))
        elif info == "python":
            blocks.append(Block(line=line, kind=BlockKind.PROGRAM, text=token.content))
        elif info == "text" and blocks and blocks[-1].kind is BlockKind.PROGRAM and blocks[-1].shown is None:
            blocks[-1] = replace(blocks[-1], shown=token.content)
        else:
            raise ValueError(f"line {line}: nothing runs a block {info!r}")
    return blocks


def commands_of(block: Block) -> list[Command]:
    """The commands of a console, each with what it printed; a line that ends in a backslash goes on in the next.

    Raises:
        ValueError: the block does not begin with a command.
    """
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if found and found[-1][0].endswith("\\"):
            found[-1] = (f"{found[-1][0]}\n{line}", [])
        elif line.startswith(PROMPT):
            found.append((line.removeprefix(PROMPT), []))
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(f"line {block.line}: a console begins with {PROMPT!r}")
    return [Command(text=text, shown=tuple(shown)) for text, shown in found]


def difference(shown: Sequence[str], stdout: Sequence[str], stderr: Sequence[str] = ()) -> str | None:
    """How an output differs from the one shown; None: it does not.

    Every line of stdout is shown, in order. Of stderr, where progress and summaries go, a page shows what it likes.
    """
    answers, notes = _kept(stdout), _kept(stderr)
    reached = {0}
    """How many lines of stdout what has been shown so far may stand for."""
    for line in _kept(shown):
        if line == ANYTHING:
            reached = set(range(min(reached), len(answers) + 1))
            continue
        before = reached
        reached = {count + 1 for count in before if count < len(answers) and fits(line, answers[count])}
        if any(fits(line, told) for told in notes):
            reached |= before
        if not reached:
            return f"shown, but not printed: {line}"
    return None if len(answers) in reached else f"printed, but not shown: {answers[max(reached)]}"


def fits(shown: str, line: str) -> bool:
    """Whether a line is the one shown, where `…` stands for any characters."""
    return re.fullmatch(".*".join(map(re.escape, shown.split(ANYTHING))), line) is not None


def _kept(lines: Sequence[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()]
