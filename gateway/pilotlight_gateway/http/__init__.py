"""The native HTTP API: one ASGI application over the ports of the gateway."""
