"""What a tenant may log on a node: bytes an hour."""

from __future__ import annotations

from pilotlight_runtime.logs.tenant_log_rates import AT_ONCE, HOUR_S, LINE_BYTES, TenantLogRates

LIMIT = 10_000_000


def passed(rates: TenantLogRates, tenant: str, lines: int, at: float, size: int = 900) -> int:
    """How many of these lines pass."""
    return sum(rates.admit(tenant, size, at) for _ in range(lines))


def test_a_tenth_may_come_at_once_and_an_hours_worth_in_an_hour() -> None:
    """Within a line; who has no limit logs on."""
    rates = TenantLogRates()
    rates.set_limit("loud", LIMIT, 0.0)

    at_once = passed(rates, "loud", 5_000, 0.0)
    later = sum(passed(rates, "loud", 200, float(second)) for second in range(1, int(HOUR_S) + 1))

    assert at_once == LIMIT * AT_ONCE // 1_000
    assert 0.98 * LIMIT / 1_000 <= later <= LIMIT / 1_000
    assert passed(rates, "other", 5_000, 0.0) == 5_000


def test_who_used_all_up_is_silent_for_a_while() -> None:
    """A tenth of what may come at once must be there again, so there are few changes to tell of."""
    rates = TenantLogRates()
    rates.set_limit("loud", LIMIT, 0.0)
    passed(rates, "loud", 5_000, 0.0)

    opened = next(second for second in range(1_000) if not rates.is_closed("loud", float(second)))

    assert opened == 36
    assert "10 MB an hour on a node" in rates.limit_text("loud")
    assert "log_bytes_per_hour" in rates.limit_text("loud")


def test_empty_lines_count_too() -> None:
    """They are kept with their time and container."""
    rates = TenantLogRates()
    rates.set_limit("loud", LIMIT, 0.0)

    assert passed(rates, "loud", 50_000, 0.0, size=0) == LIMIT * AT_ONCE // LINE_BYTES


def test_a_changed_limit_gives_nothing_back() -> None:
    """What was used stays used; None ends the limit."""
    rates = TenantLogRates()
    rates.set_limit("loud", LIMIT, 0.0)
    passed(rates, "loud", 5_000, 0.0)

    rates.set_limit("loud", 2 * LIMIT, 0.0)
    assert not rates.admit("loud", 1, 0.0)
    rates.set_limit("loud", None, 0.0)
    assert rates.admit("loud", 1, 0.0)
    assert not rates.is_closed("loud", 0.0)
