"""Names of gateways and nodes are told to operators."""

from __future__ import annotations

from pilotlight_gateway.tenancy.shown_names import told_gateways, told_name


def test_a_tenant_is_told_how_many_gateways_and_no_name() -> None:
    assert told_gateways(("gw-1", "gw-2"), operator=True) == ["gw-1", "gw-2"]
    assert told_gateways(("gw-1", "gw-2"), operator=False) == ["a gateway", "a gateway"]
    assert (told_name("n1", operator=True), told_name("n1", operator=False)) == ("n1", "")
