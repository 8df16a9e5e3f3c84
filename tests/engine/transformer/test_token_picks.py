"""The next token of each sequence."""

from __future__ import annotations

from math import log
from typing import Any

import pytest
import torch

from pilotlight_engine.engine_port import Sampling
from pilotlight_engine.scheduling.counted_draws import drawn_bits, position_key
from pilotlight_engine.transformer.token_picks import PickRule, _signed, gumbels, pick_likeliest, pick_tokens

NONE: frozenset[int] = frozenset()


def rule(position: int = 0, banned: frozenset[int] = NONE, logprobs: int | None = None, **sampling: Any) -> PickRule:
    """Greedy, unless it has a temperature."""
    chosen = Sampling(**{"temperature": 0.0, **sampling})
    return PickRule(sampling=chosen, position=position, banned=banned, logprobs=logprobs)


def test_the_numbers_are_those_of_plain_arithmetic() -> None:
    """In signed 64 bits, for any seed."""
    for seed in (0, 1, -1, (1 << 63) - 1):
        key = position_key(seed, 12345)
        found = gumbels(torch.tensor([_signed(key)]), 300)[0]
        for token in (0, 1, 299):
            uniform = ((drawn_bits(key, token) >> 41) + 0.5) * 2.0**-23
            assert float(found[token]) == pytest.approx(-log(-log(uniform)), rel=1e-4, abs=1e-5)


def test_numbers_are_finite_at_both_ends() -> None:
    """Where all bits are set, and where none are."""
    uniform = (torch.tensor([0, (1 << 23) - 1]).float() + 0.5) * 2.0**-23

    assert torch.isfinite(-torch.log(-torch.log(uniform))).all()


def test_tokens_are_drawn_as_often_as_they_are_likely() -> None:
    """Pearson's test of 20,000 draws, with temperature."""
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0, 0.5])
    count = 20_000
    rules = [rule(position=place, temperature=2.0, seed=5) for place in range(count)]
    drawn = torch.tensor([pick.token for pick in pick_tokens(logits.expand(count, -1), rules)])
    expected = torch.softmax(logits / 2, dim=-1) * count
    chi = (((torch.bincount(drawn, minlength=5) - expected) ** 2) / expected).sum()

    assert float(chi) < 18.5  # exceeded once in a thousand, with four degrees of freedom


def test_what_top_k_and_top_p_leave_out_is_never_drawn() -> None:
    """The most likely token always stays."""
    logits = torch.log(torch.tensor([0.5, 0.2, 0.15, 0.1, 0.05]))

    def seen(**sampling: Any) -> set[int]:
        rules = [rule(position=place, temperature=1.0, **sampling) for place in range(400)]
        return {pick.token for pick in pick_tokens(logits.expand(400, -1), rules)}

    assert seen() == {0, 1, 2, 3, 4}
    assert seen(top_k=2) == {0, 1}
    assert seen(top_p=0.5) == {0}
    assert seen(top_p=0.51) == {0, 1}
    assert seen(top_p=1e-9) == {0}
    assert seen(top_k=3, top_p=0.8) == {0, 1}
    assert seen(top_k=100) == {0, 1, 2, 3, 4}


def test_a_row_does_not_depend_on_the_others() -> None:
    """Rules of all kinds together, and each alone."""
    torch.manual_seed(1)
    logits = torch.randn(5, 50)
    rules = [
        rule(),
        rule(3, temperature=0.7, seed=1),
        rule(4, temperature=1.2, seed=2, top_p=0.9, logprobs=2),
        rule(5, temperature=1e-9),
        rule(6, banned=frozenset({int(logits[4].argmax())}), logprobs=0),
    ]
    together = pick_tokens(logits, rules)

    assert together == [pick_tokens(logits[row : row + 1], [each])[0] for row, each in enumerate(rules)]
    assert together[3].token == int(logits[3].argmax())
    assert together[4].token == int(logits[4].topk(2).indices[1])


def test_logprobs_are_the_model_s_own() -> None:
    """Whatever is drawn, and whatever is left out."""
    logits = torch.tensor([[3.0, 2.0, 1.0, 0.0]])
    own = torch.log_softmax(logits[0], dim=-1)
    pick = pick_tokens(logits, [rule(banned=frozenset({0}), logprobs=3, temperature=0.1)])[0]

    assert pick.token == 1
    assert pick.logprob == pytest.approx(float(own[1]))
    assert [token for token, _ in pick.top] == [0, 1, 2]
    assert [value for _, value in pick.top] == pytest.approx(own[:3].tolist())


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_row_that_is_no_numbers_has_no_token(wrong: float) -> None:
    """The others have theirs."""
    logits = torch.zeros(2, 4)
    logits[0, 2] = wrong
    logits[1, 3] = 1.0
    for temperature in (0.0, 1.0):
        bad, good = pick_tokens(logits, [rule(temperature=temperature, logprobs=1), rule()])

        assert (bad.token, good.token) == (-1, 3)
        assert "not numbers" in bad.failure


def test_the_likeliest_are_those_that_greedy_rules_pick() -> None:
    """Without a rule for each; numbers that are none end their own sequence here too."""
    torch.manual_seed(0)
    logits = torch.randn(5, 40)
    logits[3, 7] = float("nan")

    assert pick_likeliest(logits) == pick_tokens(logits, [rule() for _ in range(5)])
    assert [bool(pick.failure) for pick in pick_likeliest(logits)] == [False, False, False, True, False]
