"""Names of models."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.served.model_names import (
    MOST_NAMES,
    adapter_name,
    is_model_name,
    model_digest,
    model_names_fault,
)


@pytest.mark.parametrize("name", ["tiny", "acme/tiny-1.5", "llama3:8b", "a/b/c:d", "x" * 128, "Qwen2.5_7B+q4"])
def test_a_name(name: str) -> None:
    """Parts with single slashes or colons between them."""
    assert is_model_name(name)
    assert not model_names_fault((name,))


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/a",
        "a/",
        "a//b",
        "a:",
        "../a",
        "a/../b",
        "a b",
        "a@v1",
        "a?b",
        "a%2f",
        "é",
        "a\n",
        "x" * 129,
        ".a",
        None,
        7,
    ],
)
def test_no_name(name: Any) -> None:
    """What could be taken for another address, a ref with a pin, or nothing."""
    assert not is_model_name(name)
    assert "no name of a model" in model_names_fault((name,))


def test_several_names() -> None:
    """Some, each once."""
    assert not model_names_fault(("a", "b"))
    assert "twice" in model_names_fault(("a", "a"))
    assert "at most 16" in model_names_fault(tuple(f"m{number}" for number in range(MOST_NAMES + 1)))
    assert "expected a name" in model_names_fault(())
    assert "expected a name" in model_names_fault("tiny")


def test_a_digest_is_one_token_of_a_key() -> None:
    """Of any name, and each has its own."""
    assert model_digest("acme/tiny-1.5").isalnum()
    assert model_digest("a") != model_digest("b")


def test_an_adapter_stands_behind_the_last_colon() -> None:
    """A name may have colons of its own."""
    assert adapter_name("llama3:8b:french") == ("llama3:8b", "french")
    assert adapter_name("tiny") == ("tiny", "")
