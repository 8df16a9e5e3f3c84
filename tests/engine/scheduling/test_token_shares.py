"""Fairness between tenants in tokens."""

from __future__ import annotations

from pilotlight_engine.scheduling.token_shares import MAX_ABSENT, TokenShares


def _served(shares: TokenShares, weights: dict[str, float], rounds: int, tokens: int = 10) -> dict[str, int]:
    """How much each gets where whoever is furthest behind gets some."""
    got = dict.fromkeys(weights, 0)
    for _ in range(rounds):
        first = shares.in_order(weights)[0]
        shares.charge(first, tokens, weights[first])
        got[first] += tokens
    return got


def test_tenants_get_tokens_by_their_weights() -> None:
    """To within one portion."""
    shares = TokenShares(burst=0)
    weights = {"a": 1.0, "b": 3.0}
    for tenant in weights:
        shares.join(tenant)

    assert _served(shares, weights, 400) == {"a": 1000, "b": 3000}


def test_whoever_comes_back_gets_a_burst_and_then_its_share() -> None:
    """Not all that it did not use."""
    shares = TokenShares(burst=100)
    shares.join("a")
    shares.join("b")
    shares.leave("b")
    shares.charge("a", 100_000, 1.0)
    shares.join("b")

    assert _served(shares, {"a": 1.0, "b": 1.0}, 10) == {"a": 0, "b": 100}
    assert _served(shares, {"a": 1.0, "b": 1.0}, 100) == {"a": 500, "b": 500}


def test_leaving_forgives_nothing() -> None:
    """Whoever had much comes back behind the others."""
    shares = TokenShares(burst=100)
    shares.join("a")
    shares.join("b")
    shares.charge("b", 1000, 1.0)
    shares.leave("b")
    shares.join("b")

    assert _served(shares, {"a": 1.0, "b": 1.0}, 100) == {"a": 1000, "b": 0}


def test_a_new_tenant_is_not_behind_those_that_left() -> None:
    """It begins where the last of them stood, less its burst."""
    shares = TokenShares(burst=0)
    shares.join("a")
    shares.charge("a", 1000, 1.0)
    shares.leave("a")
    shares.join("new")
    shares.join("a")

    assert _served(shares, {"a": 1.0, "new": 1.0}, 100) == {"a": 500, "new": 500}


def test_the_absent_are_forgotten_at_some_number() -> None:
    """Names are no way to fill memory."""
    shares = TokenShares(burst=0)
    for number in range(2 * MAX_ABSENT):
        shares.join(str(number))
        shares.leave(str(number))

    assert len(shares._absent) == MAX_ABSENT
