"""What functions of a deploy may connect to: what they ask for, as far as the operator allows it to their tenant."""

from __future__ import annotations

from collections.abc import Iterable

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.networks.network_targets import given_targets
from pilotlight_core.model.spec import FunctionSpec, network_of
from pilotlight_gateway.tenancy.registry_port import RegistryPort

MOST_NAMED = 5
"""Targets that a refusal names."""
MOST_IN_COMMAND = 10
MANY = "--network …, once for each that it has now and for each of these"


def check_network(registry: RegistryPort, tenant: str, specs: Iterable[FunctionSpec]) -> None:
    """Refuse a deploy of functions that would connect to what their tenant may not.

    Raises:
        BadInput: naming the function, what is not allowed, and who can allow it.
    """
    record = registry.tenant_nowait(tenant)
    allowed = () if record is None else record.network
    for spec in specs:
        asked = network_of(spec)
        given = given_targets(asked, allowed)
        refused = [text for text in asked if text not in given]
        if refused:
            whole = (*allowed, *refused)
            # The command replaces all: a list that is cut would take away what it does not name.
            flags = " ".join(f"--network '{text}'" for text in whole) if len(whole) <= MOST_IN_COMMAND else MANY
            raise BadInput(
                f"{spec.name}: network= asks for {_list(refused)}, which {tenant} may not connect to; it may connect "
                f"to {_list(allowed) or 'nothing'}. Leave it out, or have an operator allow it: "
                f"pilotlight tenant set {tenant} {flags}",
                field="network",
            )


def _list(texts: Iterable[str]) -> str:
    texts = list(texts)
    more = f" and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return ", ".join(texts[:MOST_NAMED]) + more
