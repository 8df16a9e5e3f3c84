"""Whether a container may have the connection that it asks for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

from pilotlight_core.model.networks.network_targets import NetworkTarget, Transport, name_fault
from pilotlight_runtime.egress.proxy_requests import ProxyRequest, RefusedRequest

ASK = "is not in network= of this function"


def index_target(text: str) -> NetworkTarget:
    """A target of an operator's own, as `parse_target` reads others; its host may be an address."""
    scheme, _, rest = text.rpartition("://")
    host, _, port = rest.rpartition(":")
    # Clients of an address name none as they begin TLS, so there is nothing to check it by.
    secure = Transport.TCP if _is_address(host) else Transport.TLS
    return NetworkTarget(Transport(scheme or secure), host, int(port))


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def transport_of(request: ProxyRequest, targets: Sequence[NetworkTarget], *, is_index: bool = False) -> Transport:
    """What may be spoken over the connection; `is_index`: the targets are an operator's, whose hosts may be addresses.

    Raises:
        RefusedRequest: none is given.
    """
    if not is_index and (why := name_fault(request.host)):
        raise RefusedRequest(403, f"this host cannot be connected to: {why}")
    admitted = {each for each in Transport if any(t.admits(each, request.host, request.port) for t in targets)}
    wanted = (Transport.TCP, Transport.TLS) if request.is_tunnel else (Transport.HTTP,)
    for transport in wanted:
        if transport in admitted:
            return transport
    place = f"{request.host}:{request.port}"
    if request.is_tunnel and Transport.HTTP in admitted:
        raise RefusedRequest(403, f"{place} may be asked in clear only, not through a tunnel")
    if admitted:
        raise RefusedRequest(403, f"{place} may not be asked in clear: use https://")
    raise RefusedRequest(403, f"{place} {ASK}")
