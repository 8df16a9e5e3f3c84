"""What calls ask for in tokens, and what one may have."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model import values
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import MethodSpec
from pilotlight_gateway.limits.token_asks import TokenAsk, bounded_arguments, token_ask


def method(*parameters: str, answers: tuple[str, ...] = ()) -> MethodSpec:
    return MethodSpec(
        name="generate",
        attribute="generate",
        input_schema={"type": "object", "properties": {name: {} for name in parameters}},
        output_schema={"properties": {name: {} for name in answers}},
    )


GENERATE = method("prompt", "prompt_ids", "messages", "max_tokens")
EMBED = method("input", answers=("embeddings", "prompt_tokens"))


@pytest.mark.parametrize(
    ("document", "ask"),
    [
        ({"prompt": "x" * 398, "max_tokens": 50}, TokenAsk(101, 50)),  # with the three bytes of its head
        ({"prompt": "ü" * 100}, TokenAsk(51, None)),
        ({"prompt_ids": [70_000, 1, 2], "max_tokens": None}, TokenAsk(3, None)),
        ({"prompt_ids": list(range(20)), "max_tokens": 0}, TokenAsk(20, 0)),
        ({"prompt_ids": [1] * 70_000, "max_tokens": 7}, TokenAsk(70_000, 7)),
        ({"prompt_ids": None, "prompt": "x" * 7}, TokenAsk(2, None)),
        ({"messages": [{"role": "user", "content": "x" * 100}], "max_tokens": True}, TokenAsk(31, None)),
        ({"prompt": "", "max_tokens": 2**63}, TokenAsk(0, 2**63)),
        ({"prompt": "x" * 7, "max_tokens": -(2**40)}, TokenAsk(2, 0)),
        ({}, TokenAsk(0, None)),
    ],
)
def test_a_document_of_generation_says_what_it_asks_for(document: dict[str, Any], ask: TokenAsk) -> None:
    """Ids are counted, texts estimated by their bytes."""
    assert token_ask(GENERATE, values.encode(document)) == ask


def test_a_document_to_embed_asks_for_its_texts() -> None:
    """It has no answer in tokens."""
    assert token_ask(EMBED, values.encode({"input": ["x" * 20, "y" * 20]})) == TokenAsk(11, 0)


@pytest.mark.parametrize("other", [method("prompt"), method("max_tokens"), method("input"), method("text")])
def test_of_other_functions_nothing_is_known(other: MethodSpec) -> None:
    """They may count tokens all the same, at their end."""
    arguments = values.encode({"prompt": "x" * 100})
    assert token_ask(other, arguments) is None
    assert bounded_arguments(other, arguments, "acme", 1, 1) is arguments


def test_what_is_within_its_limits_stays_as_it_is() -> None:
    """Byte for byte."""
    arguments = values.encode({"prompt": "x" * 39, "max_tokens": 10})
    assert bounded_arguments(GENERATE, arguments, "acme", 11, 10) is arguments
    assert bounded_arguments(GENERATE, arguments, "acme", None, None) is arguments


def test_a_call_that_says_nothing_of_its_answer_gets_the_most_that_it_may_be() -> None:
    """Else it would be as long as its function lets it."""
    for document in ({"prompt": "x"}, {"prompt": "x", "max_tokens": None}):
        bounded = bounded_arguments(GENERATE, values.encode(document), "acme", None, 64)
        assert values.decode(bounded) == {"prompt": "x", "max_tokens": 64}


@pytest.mark.parametrize(
    ("document", "limit", "field", "current", "detail"),
    [
        (
            {"prompt": "x" * 400, "max_tokens": 1},
            "prompt_tokens",
            "input",
            101,
            "input: the prompt has about 101 tokens, and the limit prompt_tokens of acme allows 20.",
        ),
        (
            {"prompt": "x", "max_tokens": 65},
            "output_tokens",
            "input.max_tokens",
            65,
            "input.max_tokens: 65 tokens are asked for, and the limit output_tokens of acme allows 20.",
        ),
    ],
)
def test_more_than_one_call_may_have_is_refused_with_the_numbers(
    document: dict[str, Any], limit: str, field: str, current: int, detail: str
) -> None:
    """400: the same call would never be let in."""
    with pytest.raises(BadInput) as caught:
        bounded_arguments(GENERATE, values.encode(document), "acme", 20, 20)

    error = caught.value
    assert (error.wire_code, error.meaning.status, error.more["field"]) == ("too_many_tokens", 400, field)
    assert error.detail == detail
    (reached,) = error.more["limits"]
    assert (reached.limit, reached.allowed, reached.current) == (limit, 20, current)


def test_a_prompt_to_embed_is_bounded_too() -> None:
    """By the limit of prompts; it has no answer in tokens."""
    arguments = values.encode({"input": ["x" * 100]})
    with pytest.raises(BadInput):
        bounded_arguments(EMBED, arguments, "acme", 20, 1)
    assert bounded_arguments(EMBED, arguments, "acme", 40, 1) is arguments
