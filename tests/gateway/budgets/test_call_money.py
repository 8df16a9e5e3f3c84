"""The money of a call is ended once, and asked for elsewhere as it is kept here."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.limiting import LimitAsk, LimitAskKind
from pilotlight_gateway.budgets.call_money import CallMoney, money_of

FUNCTION = "acme:zoo.chat"


@pytest.mark.parametrize("spent", [12, 0, None])
def test_what_was_spent_is_told_once(spent: int | None) -> None:
    """Under the number of the ask that was answered, which may be a repeated one."""
    told: list[tuple[int, int | None]] = []
    money = CallMoney("acme", FUNCTION, "k1", 100, 10, 60.0, 1)
    money.end(99)  # nothing was let in yet
    money.admit(7, lambda ended, cost: told.append((ended.number, cost)))
    money.end(spent)
    money.end(99)
    assert told == [(7, spent)]


def test_a_home_elsewhere_keeps_what_was_asked_for() -> None:
    """Also where it decides under another number."""
    money = CallMoney("acme", FUNCTION, "k1", 100, 10, 60.0, 3)
    assert money.ask() == LimitAsk(3, "acme", FUNCTION, 0.0, LimitAskKind.MONEY, 100, 10, "k1", 60.0)
    assert money_of(money.ask()).ask() == money.ask()
    assert money_of(money.ask(), 5).number == 5
