"""What functions of a deploy may connect to."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_gateway.deploys.rules.network_policy import MOST_IN_COMMAND, check_network
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.specs import function_spec


def registry(*allowed: str) -> MemoryRegistry:
    made = MemoryRegistry()
    made.tenant_records["acme"] = TenantRecord(name="acme", created_at=1.0, network=allowed)
    return made


def refused(known: MemoryRegistry, *targets: str, tenant: str = "acme") -> str:
    with pytest.raises(BadInput) as caught:
        check_network(known, tenant, [function_spec("f"), function_spec("g", network=targets)])
    assert caught.value.more["field"] == "network"
    return caught.value.detail


def test_what_is_not_allowed_is_refused_by_name() -> None:
    """With what is, and the command by which an operator allows it, which keeps the rest."""
    assert refused(registry("*.example.com:443"), "api.example.com:443", "example.org:443") == (
        "g: network= asks for example.org:443, which acme may not connect to; it may connect to *.example.com:443. "
        "Leave it out, or have an operator allow it: "
        "pilotlight tenant set acme --network '*.example.com:443' --network 'example.org:443'"
    )


def test_without_a_word_of_the_operator_there_is_nothing() -> None:
    """Nor for a tenant whose record is not known."""
    assert "it may connect to nothing" in refused(registry(), "api.example.com:443")
    assert "it may connect to nothing" in refused(registry("*:443"), "api.example.com:443", tenant="nobody")
    assert "tcp://db.example.com:5432" in refused(registry("*:5432"), "tcp://db.example.com:5432")


def test_a_long_list_is_cut() -> None:
    """A refusal is read by people."""
    assert "h4.example.com:443 and 15 more" in refused(registry(), *(f"h{n}.example.com:443" for n in range(20)))


def test_the_command_takes_nothing_away() -> None:
    """It replaces all that is allowed: it names the whole list, or none of it."""
    allowed = [f"h{n}.example.com:443" for n in range(MOST_IN_COMMAND - 1)]
    told = refused(registry(*allowed), "example.org:443")
    assert all(f"--network '{text}'" in told for text in (*allowed, "example.org:443"))
    for known in (registry(*allowed, "*.example.net:443"), registry(*(f"h{n}.org:443" for n in range(256)))):
        told = refused(known, "example.org:443")
        assert "--network '" not in told
        assert "once for each that it has now" in told


def test_what_is_allowed_passes() -> None:
    """Also functions that ask for nothing."""
    check_network(registry(), "acme", [function_spec(), function_spec(network=UNSET), function_spec(network=())])
    check_network(registry("*.example.com:443"), "acme", [function_spec(network=("api.example.com:443",))])
