"""Names of gateways and nodes, which operators read: to tenants they say how the platform is built, and who is beside
them on a host.
"""

from __future__ import annotations

from collections.abc import Sequence

SOMEBODY = "a gateway"


def shown_gateways(names: Sequence[str], *, operator: bool) -> list[str]:
    """Gateways, to tenants how many there are."""
    return list(names) if operator else [SOMEBODY] * len(names)


def shown_name(name: str, *, operator: bool) -> str:
    """A gateway or a node, to operators alone."""
    return name if operator else ""
