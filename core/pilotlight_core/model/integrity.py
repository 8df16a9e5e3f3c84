"""The check that `check_integrity` methods are made of."""

from __future__ import annotations


def require(held: bool, sentence: str) -> None:
    """Raise AssertionError with `sentence` unless `held`. Unlike an assert statement it is never compiled away."""
    if not held:
        raise AssertionError(sentence)
