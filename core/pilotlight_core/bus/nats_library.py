"""nats-py without its WebSockets: their library would cost each process 80 ms of its start and 11 MB."""

from pilotlight_core.lean_libraries import without

with without("aiohttp"):
    from nats.aio.client import Client
    from nats.errors import Error
    from nats.protocol.parser import AUTHORIZATION_VIOLATION, PERMISSIONS_ERR

__all__ = ["AUTHORIZATION_VIOLATION", "PERMISSIONS_ERR", "Client", "Error"]
