"""HTML by f-strings in which nothing is markup that was not made here: names, errors and logs are tenants' text."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


class Markup(str):
    """Text that is HTML already. Only this module and drawings make it."""

    __slots__ = ()


def escaped(value: object) -> Markup:
    """A value as HTML: escaped, unless it is markup."""
    return value if isinstance(value, Markup) else Markup(escape(str(value), quote=True))


def joined(parts: Iterable[object], between: str = "") -> Markup:
    """The parts one after another."""
    return Markup(between.join(escaped(part) for part in parts))


def tag(kind: str, /, *inner: object, **attributes: object) -> Markup:
    """An element. `class_` is `class`, other underscores are dashes; None and False leave an attribute out."""
    return Markup(f"<{kind}{_attributes(attributes)}>{joined(inner)}</{kind}>")


def void(kind: str, /, **attributes: object) -> Markup:
    """An element that has no content."""
    return Markup(f"<{kind}{_attributes(attributes)}>")


def _attributes(given: dict[str, object]) -> str:
    found = []
    for name, value in given.items():
        if value is None or value is False:
            continue
        shown = name.rstrip("_").replace("_", "-")
        found.append(f" {shown}" if value is True else f' {shown}="{escape(str(value), quote=True)}"')
    return "".join(found)
