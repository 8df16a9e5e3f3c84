"""Names of gateways and nodes are told to operators."""

from __future__ import annotations

from pilotlight_gateway.tenancy.shown_names import shown_gateways, shown_name


def test_a_tenant_is_told_how_many_gateways_and_no_name() -> None:
    assert shown_gateways(("gw-1", "gw-2"), operator=True) == ["gw-1", "gw-2"]
    assert shown_gateways(("gw-1", "gw-2"), operator=False) == ["a gateway", "a gateway"]
    assert (shown_name("n1", operator=True), shown_name("n1", operator=False)) == ("n1", "")
