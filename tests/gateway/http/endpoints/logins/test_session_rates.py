"""Sessions are opened now and then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from pilotlight_core.model.errors import TooMuch
from pilotlight_gateway.http.endpoints.logins.session_rates import SessionRates


def taken(take: Callable[[], None], most: int) -> int:
    """How many are let through in a row."""
    number = 0
    with suppress(TooMuch):
        while number < most:
            take()
            number += 1
    return number


def test_a_key_opens_twenty_and_then_one_in_three_seconds() -> None:
    """Other keys are not held back, and what is refused takes nothing of the address."""
    now = [0.0]
    rates = SessionRates(lambda: now[0])
    assert taken(lambda: rates.take_opening("mine", "192.0.2.1"), 500) == 20
    assert taken(lambda: rates.take_opening("other", "192.0.2.1"), 500) == 20
    assert taken(lambda: rates.take_exchange("192.0.2.1"), 500) == 160
    now[0] = 6.1
    assert taken(lambda: rates.take_opening("mine", "192.0.2.1"), 500) == 2


def test_an_address_exchanges_two_hundred_codes_in_a_row() -> None:
    """Whoever tries codes has shown nothing else."""
    rates = SessionRates(lambda: 0.0)
    assert taken(lambda: rates.take_exchange("192.0.2.1"), 500) == 200
    with pytest.raises(TooMuch, match="from this address") as refused:
        rates.take_opening("mine", "192.0.2.1")
    rates.take_exchange("192.0.2.2")
    assert refused.value.retry_after
