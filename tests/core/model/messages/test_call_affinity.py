"""Prompts that begin equally are known by equal digests, and nothing of one tenant's by another."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.messages.call_affinity import BLOCK_BYTES, BLOCKS_AT_MOST, CallAffinity, affinity_of

LONG = "All of the callers of this function begin with the same instructions. " * 40


def affinity(tenant: str = "acme", **arguments: Any) -> CallAffinity:
    found = affinity_of(tenant, msgspec.msgpack.encode(arguments))
    assert found is not None
    return found


def common(one: CallAffinity, other: CallAffinity) -> int:
    return next((n for n, (a, b) in enumerate(zip(one.prefix, other.prefix, strict=False)) if a != b), len(one.prefix))


@pytest.mark.parametrize(
    "prompt",
    [
        lambda text: {"prompt": text},
        lambda text: {"prompt_ids": list(text.encode())},
        lambda text: {
            "messages": [{"role": "system", "content": LONG}, {"role": "user", "content": text[len(LONG) :]}]
        },
    ],
)
def test_equal_beginnings_are_found(prompt: Any) -> None:
    """However the prompt is given, and however long it is as a whole."""
    one, other = affinity(**prompt(LONG + "What is it?")), affinity(**prompt(LONG + "Why?" * 500))
    assert len(LONG) // BLOCK_BYTES <= common(one, other) < len(other.prefix)


def test_a_conversation_continues_its_beginning() -> None:
    """More messages count in the header of their array alone, which is no part of the prompt."""
    turns = [{"role": "user", "content": LONG} for _ in range(20)]
    one, other = affinity(messages=turns[:2]), affinity(messages=turns)
    assert common(one, other) == len(one.prefix) > 0


def test_tenants_and_adapters_share_nothing() -> None:
    """Their caches are apart."""
    mine = affinity(prompt=LONG)
    assert not set(mine.prefix) & set(affinity("other", prompt=LONG).prefix)
    assert not set(mine.prefix) & set(affinity(prompt=LONG, adapter="a").prefix)
    assert not set(mine.prefix) & set(affinity(messages=[{"role": "user", "content": LONG}], tools=[{"x": 1}]).prefix)


def test_what_is_compared_is_bounded() -> None:
    """The rest of a long prompt costs nothing."""
    assert len(affinity(prompt="x" * 10**6).prefix) == BLOCKS_AT_MOST


@pytest.mark.parametrize("arguments", [{}, {"prompt": 5}, {"messages": "x"}, {"text": "short"}])
def test_other_arguments_have_none(arguments: dict[str, Any]) -> None:
    """Whatever they are, a call is not refused here."""
    assert affinity_of("acme", msgspec.msgpack.encode(arguments)) is None


def test_a_short_prompt_has_no_block() -> None:
    """Its adapter is all that is told."""
    assert affinity(prompt="hi", adapter="a") == CallAffinity("a")
