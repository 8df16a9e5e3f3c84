"""What the doctor says of one thing: how it is, what was found, what was expected, and what to do about it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

WIDTH = 120


class Health(StrEnum):
    """How one thing is."""

    OK = "ok"
    WARN = "warn"  # the host can join; something is worse than it should be
    FAIL = "fail"  # the host cannot be what it was checked for


class HostRole(StrEnum):
    """What a host is to be."""

    NODE = "node"
    GATEWAY = "gateway"
    BUS = "bus"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line."""

    name: str
    health: Health
    found: str
    expected: str = ""
    """"": what was found is all there is to say."""
    todo: str = ""
    """A command, or a sentence where there is none; "" where nothing is to be done."""


def judged(name: str, found: str, expected: str, *, ok: bool, todo: str, otherwise: Health = Health.FAIL) -> Finding:
    """What is expected or not; `otherwise` is how bad it is if it is not."""
    health = Health.OK if ok else otherwise
    return Finding(name=name, health=health, found=found, expected=expected, todo="" if ok else todo)


def worst(findings: Iterable[Finding]) -> Health:
    """How all of them are."""
    health = {each.health for each in findings}
    return next((one for one in (Health.FAIL, Health.WARN) if one in health), Health.OK)


def report(findings: Sequence[Finding], role: HostRole) -> str:
    """The lines that people read: below what is not well, what was expected and what to do."""
    width = max(len(printable(one.name)) for one in findings)
    lines: list[str] = []
    for one in findings:
        lines += _wrapped(f"{one.health:<4}  {printable(one.name):<{width}}  ", one.found)
        if one.health is not Health.OK:
            lines += _wrapped(f"{'':{width + 8}}expected: ", one.expected) if one.expected else []
            lines += [f"{'':{width + 8}}do: {line}" for line in printable(one.todo).split("\n")]
    return "\n".join([*lines, "", _summary(findings, role)]) + "\n"


def printable(text: str) -> str:
    """With no sign that a terminal would obey, whoever sent it: each is shown as it is written in Python."""
    return "".join(letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text)


def _summary(findings: Sequence[Finding], role: HostRole) -> str:
    counts = {health: sum(one.health is health for one in findings) for health in Health}
    can = "cannot be" if counts[Health.FAIL] else "can be"
    told = ", ".join(f"{counts[health]} {health}" for health in Health if counts[health])
    return (
        f"This host {can} a {role}: {told}."
        if role is not HostRole.BUS
        else f"This host {can} a server of the bus: {told}."
    )


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        printable(text), WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False,
        break_on_hyphens=False,
    ) or [head.rstrip()]  # fmt: skip
