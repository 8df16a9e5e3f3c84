"""Gateways that did not answer, as a line names them."""

from __future__ import annotations

from collections.abc import Collection


def unheard_text(names: Collection[str]) -> str:
    """Their names, or where they are not told how many there are."""
    if len(names) > 1 and len(set(names)) == 1:
        return f"{len(names)} gateways"
    return ", ".join(names)
