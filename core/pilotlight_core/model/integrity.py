"""How `check_integrity` says that the state contradicts itself."""

from __future__ import annotations


def require(held: bool, sentence: str) -> None:
    """Raise AssertionError with `sentence` unless it held. Unlike an assert statement it is never compiled away."""
    if not held:
        raise AssertionError(sentence)
