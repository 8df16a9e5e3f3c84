"""The byte budget: nobody gets more than there is, and nobody gets it all."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import Unavailable
from pilotlight_gateway.bodies.byte_budget import ByteBudget


def test_one_tenant_gets_half_and_hears_that_it_is_its_share() -> None:
    """The refusal says when to try again and counts nothing; others still get theirs."""
    budget = ByteBudget(limit=20)
    budget.take(8, "acme")

    with pytest.raises(Unavailable, match="tenant acme already holds 8 bytes here, of a share of 10") as refused:
        budget.take(3, "acme")

    assert (refused.value.wire_code, refused.value.retry_after, budget.used) == ("overloaded", 1.0, 8)
    budget.take(10, "rival")
    budget.check_integrity()


def test_all_tenants_together_get_no_more_than_there_is() -> None:
    """Each within its share, the third finds it full."""
    budget = ByteBudget(limit=20)
    budget.take(9, "acme")
    budget.take(9, "rival")

    with pytest.raises(Unavailable, match="this gateway already holds 18 of 20 bytes"):
        budget.take(3, "third")

    budget.give_back(9, "acme")
    budget.take(3, "third")
    budget.check_integrity()


def test_what_a_block_holds_is_free_after_it() -> None:
    """Also when it raises; a tenant that holds nothing leaves no trace."""
    budget = ByteBudget(limit=20)

    def work() -> None:
        with budget.holding(7, "acme"):
            assert budget.used == 7
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        work()
    assert (budget.used, budget._by_tenant) == (0, {})


def test_nothing_can_be_taken_and_given_back_by_anybody() -> None:
    """Empty pieces are common, also of those who have used up their share."""
    budget = ByteBudget(limit=2)
    budget.take(1, "acme")
    budget.take(0, "acme")
    budget.take(0, "rival")
    budget.give_back(0, "rival")

    assert (budget.used, budget._by_tenant) == (1, {"acme": 1})


def test_giving_back_what_was_not_taken_is_found() -> None:
    """The books of the tenants and of the whole must agree."""
    budget = ByteBudget(limit=20)
    budget.take(5, "acme")
    budget.give_back(6, "acme")

    with pytest.raises(AssertionError, match="byte budget"):
        budget.check_integrity()
