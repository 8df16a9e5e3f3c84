"""How many calls are kept for a tenant."""

from __future__ import annotations

from pilotlight_gateway.traces import keep_rates
from pilotlight_gateway.traces.keep_rates import KeepRate


def test_a_tenant_has_so_many_a_second_and_some_at_once() -> None:
    """And no tenant has less for what another does."""
    rate = KeepRate(10.0)
    assert sum(rate.takes("acme", 0.0) for _ in range(1_000)) == 100
    assert sum(rate.takes("acme", 2.0) for _ in range(1_000)) == 20
    assert sum(rate.takes("other", 2.0) for _ in range(1_000)) == 100
    assert not rate.takes("acme", 1.0)  # a clock that is set back gives nothing


def test_it_remembers_so_many_tenants() -> None:
    rate = KeepRate(1.0)
    for number in range(keep_rates.MOST_TENANTS + 10):
        rate.takes(f"t{number}", 0.0)
    assert len(rate._left) == keep_rates.MOST_TENANTS
