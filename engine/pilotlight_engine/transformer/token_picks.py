"""The next token of each sequence, by its own rules, from the logits of a step."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import NamedTuple

import torch

from pilotlight_engine.engine_port import Sampling
from pilotlight_engine.scheduling.counted_draws import FIRST, GOLDEN, MASK, SECOND, position_key
from pilotlight_engine.scheduling.scheduled_engine import TokenPick

LEAST_HEAT = 1e-5
"""Below this temperature the most likely token is taken: nothing else has a chance, and logits would overflow."""


class PickRule(NamedTuple):
    """How the next token of one sequence is picked."""

    sampling: Sampling
    position: int
    """The absolute one of the token to pick."""
    banned: frozenset[int]
    """Tokens that may not come yet."""
    logprobs: int | None


def pick_tokens(logits: torch.Tensor, rules: Seq[PickRule]) -> list[TokenPick]:
    """One pick for each row of `logits`, `[sequences, vocabulary]`. A row does not depend on the others."""
    logits = logits.float()
    raw = logits
    if any(rule.banned for rule in rules):
        logits = logits.clone()
        for row, rule in enumerate(rules):
            logits[row, [token for token in rule.banned if 0 <= token < logits.shape[1]]] = float("-inf")
    best, greedy = logits.max(dim=-1)
    finite, tokens = torch.isfinite(best).tolist(), greedy.tolist()
    drawn = [row for row, rule in enumerate(rules) if rule.sampling.temperature >= LEAST_HEAT and finite[row]]
    if drawn:
        chosen = _draw(logits if len(drawn) == len(rules) else logits[drawn], [rules[row] for row in drawn])
        for row, token in zip(drawn, chosen, strict=True):
            tokens[row] = token
    picks = _picks(tokens, finite)
    told = [row for row, rule in enumerate(rules) if rule.logprobs is not None and finite[row]]
    if told:
        _add_logprobs(picks, raw[told], told, rules)
    return picks


def pick_likeliest(logits: torch.Tensor) -> list[TokenPick]:
    """The same, where every rule takes the likeliest token and nothing else: what most steps of greedy ones are."""
    best, tokens = logits.float().max(dim=-1)
    return _picks(tokens.tolist(), torch.isfinite(best).tolist())


def _picks(tokens: list[int], finite: list[bool]) -> list[TokenPick]:
    return [
        TokenPick(token) if good else TokenPick(token=-1, failure="the model's logits are not numbers")
        for token, good in zip(tokens, finite, strict=True)
    ]


def _draw(logits: torch.Tensor, rules: Seq[PickRule]) -> list[int]:
    """Gumbel-max over what top_k and top_p leave."""
    temperatures = [rule.sampling.temperature for rule in rules]
    scaled = logits / torch.tensor(temperatures, device=logits.device)[:, None]
    for row, rule in enumerate(rules):
        _keep_likely(scaled[row], rule.sampling)
    keys = torch.tensor(
        [_signed(position_key(rule.sampling.seed, rule.position)) for rule in rules], device=logits.device
    )
    return [int(token) for token in (scaled + gumbels(keys, logits.shape[1])).argmax(dim=-1)]


def _keep_likely(logits: torch.Tensor, sampling: Sampling) -> None:
    """Take from one row what top_k, and then top_p, leave out."""
    if 0 < sampling.top_k < logits.shape[0]:
        least = torch.topk(logits, sampling.top_k).values[-1]
        logits.masked_fill_(logits < least, float("-inf"))
    if sampling.top_p < 1:
        ordered, places = torch.sort(logits, descending=True, stable=True)
        shares = torch.softmax(ordered, dim=-1)
        before = shares.cumsum(dim=-1) - shares  # the most likely one has nothing before it: it stays
        logits[places[before >= sampling.top_p]] = float("-inf")


def gumbels(keys: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """A Gumbel number for each key and token, `[keys, vocabulary]`: those of `counted_draws`."""
    steps = torch.arange(1, vocabulary + 1, dtype=torch.int64, device=keys.device) * _signed(GOLDEN)
    bits = keys[:, None] + steps
    bits = (bits ^ _shifted(bits, 30)) * _signed(FIRST)
    bits = (bits ^ _shifted(bits, 27)) * _signed(SECOND)
    bits = bits ^ _shifted(bits, 31)
    # 23 bits, so that the middle of the last of 2^23 parts is a float below 1.
    uniform = (_shifted(bits, 41).float() + 0.5) * 2.0**-23
    return -torch.log(-torch.log(uniform))


def _shifted(bits: torch.Tensor, by: int) -> torch.Tensor:
    """To the right, with zeros from the left: torch has only signed 64 bits in full."""
    return (bits >> by) & ((1 << (64 - by)) - 1)


def _signed(value: int) -> int:
    value &= MASK
    return value - (1 << 64) if value >> 63 else value


def _add_logprobs(picks: list[TokenPick], logits: torch.Tensor, rows: Seq[int], rules: Seq[PickRule]) -> None:
    logprobs = torch.log_softmax(logits, dim=-1)
    most = max(rules[row].logprobs or 0 for row in rows)
    values, tokens = torch.topk(logprobs, min(most, logits.shape[1]))
    for at, row in enumerate(rows):
        count = rules[row].logprobs or 0
        top = tuple(zip(tokens[at, :count].tolist(), values[at, :count].tolist(), strict=True))
        token = picks[row].token
        picks[row] = TokenPick(token=token, logprob=float(logprobs[at, token]), top=top)
