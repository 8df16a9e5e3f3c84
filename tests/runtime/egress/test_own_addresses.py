"""Which addresses are this host's own, by the kernel's word. Two of one network: `tests/hosts/test_egress.py`."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from pilotlight_runtime.egress.own_addresses import is_own_address


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1", "255.255.255.255"])
def test_what_this_host_answers_for(address: str) -> None:
    """Also addresses that no connection of its own comes from."""
    try:
        assert is_own_address(ip_address(address)) or ":" in address
    except OSError:
        assert ":" in address  # without IPv6


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::"])
def test_what_others_answer_for(address: str) -> None:
    """Or nobody, since there is no way there."""
    assert not is_own_address(ip_address(address))
