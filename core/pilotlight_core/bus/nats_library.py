"""nats-py without its WebSockets: their library would cost each process 80 ms of its start and 11 MB."""

import sys
from importlib import import_module

_WEBSOCKETS = "aiohttp"
if _WEBSOCKETS not in sys.modules:
    sys.modules[_WEBSOCKETS] = None  # type: ignore[assignment] # so that importing it fails, which nats-py bears
    try:
        import_module("nats.aio.transport")
    finally:
        del sys.modules[_WEBSOCKETS]

from nats.aio.client import Client  # noqa: E402
from nats.errors import Error  # noqa: E402
from nats.protocol.parser import AUTHORIZATION_VIOLATION, PERMISSIONS_ERR  # noqa: E402

__all__ = ["AUTHORIZATION_VIOLATION", "PERMISSIONS_ERR", "Client", "Error"]
